package hns

import (
	"fmt"
	"net"
	"slices"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

var (
	_ = evidence.New("hns.accelnet-management-macs", evidence.Code,
		"From HNS 15.4 a node has one list of management MAC addresses whose virtual functions HNS must not use; /accelnet/ of HNS v1 sets, gets and deletes it, and answers with the list.",
		"microsoft/hcsshim internal/hns/hnsaccelnet.go", "microsoft/hcsshim hcn/hnsv1_test.go TestAccelnetNnvManagementMacAddresses",
		"microsoft/hcsshim hcn/hcnglobals.go AccelnetVersion")
	_ = evidence.New("hns.accelnet-details", evidence.Inferred,
		"Setting the list replaces it, a node without a list returns an empty one, an invalid address is refused with 0x80070057, and the list survives a restart of HNS. It does not affect packets here: adapters with virtual functions are not modelled.",
		"microsoft/hcsshim internal/hns/hnsaccelnet.go")
)

// ManagementMACs returns the addresses that are kept from the reassignment of virtual
// functions (hns.accelnet-management-macs).
func (s *Service) ManagementMACs() ([]string, error) {
	return slices.Clone(s.managementMACs), s.accelnet("hnsCall")
}

// SetManagementMACs replaces them; without any it deletes the list.
func (s *Service) SetManagementMACs(macs []string) error {
	const op = "hnsCall"
	if err := s.accelnet(op); err != nil {
		return err
	}
	var bad []string
	list := make([]string, 0, len(macs))
	for i, m := range macs {
		if hw, err := net.ParseMAC(m); err != nil || len(hw) != 6 {
			bad = append(bad, fmt.Sprintf("MacAddressList[%d]: %q is not a MAC address; write 00-15-5D-0A-B7-C6", i, m))
		}
		list = append(list, canonicalMAC(m))
	}
	if len(bad) > 0 {
		return ErrInvalidParam.forCall(op, bad...)
	}
	s.managementMACs = list
	return nil
}

func (s *Service) accelnet(op string) error {
	if s.build.Has(builds.Accelnet) {
		return nil
	}
	return ErrRequestUnsupported.withf(op, "%s does not have /accelnet/, which HNS 15.4 introduced", s.build)
}
