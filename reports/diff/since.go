package diff

import "github.com/winlab-dev/winlab/reports/result"

// Since is the report as the later run's document carries it.
func (r *Report) Since() *result.Since {
	s := &result.Since{Name: r.A.Name, Tool: r.A.Tool, Date: r.A.Date, Compared: r.Compared, Changed: r.Changed, Added: len(r.OnlyB),
		Removed: len(r.OnlyA)}
	for i := range r.Groups {
		g := &r.Groups[i]
		c := result.Change{Kind: string(g.Kind), Says: g.Head(), Checks: len(g.Changes)}
		seen := map[string]bool{}
		for _, k := range g.Changes {
			list, name := &c.Claims, k.Claim
			if name == "" {
				list, name = &c.Flows, k.Lab+": "+k.Flow
			}
			if !seen[name] {
				seen[name] = true
				*list = append(*list, name)
			}
		}
		s.Groups = append(s.Groups, c)
	}
	return s
}
