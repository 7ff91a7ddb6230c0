package hcn

// counts are how often each function was called, by verb and kind.
type counts map[[2]uint8]uint64

// Counts returns how many calls were made since the service began, by function:
// "HcnCreateEndpoint". It costs less than a call log.
func (s *Service) Counts() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]uint64, len(s.counts))
	for k, n := range s.counts {
		all[callName(verb(k[0]), Kind(k[1]))] += n
	}
	return all
}
