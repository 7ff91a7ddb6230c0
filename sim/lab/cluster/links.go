package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/fabric"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

// LinkState is what is wrong with a link, in words: "delay 20ms, loss 5%", "down"; "up"
// for nothing.
type LinkState struct {
	// Of is its name in a lab: "segment/nodes", "router/gw@internet".
	Of    string `json:"of"`
	State string `json:"state"`
}

func (b *builder) links(context.Context) error {
	b.setLinks(b.Plan.Links)
	return nil
}

// setLinks gives links their states. The lab has been checked: all of them are there.
func (c *Cluster) setLinks(links []plan.Link) {
	if c.linkStates == nil {
		c.linkStates = map[string]string{}
	}
	for _, l := range links {
		c.slowLink(l)
		if l.Kind == labfile.SegmentLink {
			c.Segment(l.Name).Line = lineOf(l, "segment "+l.Name)
			c.linkStates[l.Of] = l.Text
			continue
		}
		for _, s := range c.Segments {
			if l.On != "" && l.On != s.Name {
				continue
			}
			for _, n := range s.NICs {
				if m := c.ownerOf(n); m != "" && m == l.Kind+"/"+l.Name {
					n.Line = lineOf(l, "link of "+m+" on "+s.Name)
					c.linkStates[m+"@"+s.Name] = l.Text
				}
			}
		}
	}
}

// slowLink keeps what a trace does not follow of a link as it is now.
func (c *Cluster) slowLink(l plan.Link) {
	// What was said of a machine's cables says what each of them has now, and what is
	// said of one cable leaves the notice of the others.
	c.slowLinks = slices.DeleteFunc(c.slowLinks, func(x plan.Link) bool {
		return x.Kind == l.Kind && x.Name == l.Name && (l.On == "" || x.On == l.On)
	})
	if l.Slow() {
		c.slowLinks = append(c.slowLinks, l)
	}
}

// Notices are what nothing follows from in the cluster as it is: links count as they are
// now, and not as the lab or a step had them, and programs that have ended follow nothing.
func (c *Cluster) Notices() []trace.Notice {
	var was []trace.Notice
	links := slices.Clone(c.Plan.Links)
	for _, s := range c.Plan.Steps {
		links = append(links, s.Links...)
	}
	for _, l := range links {
		if n, slow := l.Notice(); slow {
			was = append(was, n)
		}
	}
	all := slices.DeleteFunc(slices.Clone(c.NotModelled), func(n trace.Notice) bool {
		return slices.ContainsFunc(was, func(w trace.Notice) bool { return w.What == n.What && w.Why == n.Why })
	})
	for _, l := range c.slowLinks {
		n, _ := l.Notice()
		all = trace.AddNotice(all, n)
	}
	for _, p := range c.Programs() {
		if p.Ended != "" {
			all = trace.AddNotice(all, p.Notice())
		}
	}
	return all
}

// lineOf is nil for a link without faults.
func lineOf(l plan.Link, name string) wire.Line {
	if !l.Down && l.LinkState == (labfile.LinkState{}) {
		return nil
	}
	return &fabric.Link{Name: name, Down: l.Down, Delay: l.Delay, Jitter: l.Jitter, Loss: l.Loss, Rate: l.Rate, Origin: l.Origin}
}

// ownerOf is the machine of an interface, "node/win1"; "" for none.
func (c *Cluster) ownerOf(n *wire.NIC) string {
	for _, m := range c.machines {
		if m.Kind != PodKind && any(m.Machine) == any(n.Owner) {
			return m.Ref.String()
		}
	}
	return ""
}

// Links are all links of the cluster with their states: its segments, then the cables of
// the machines on them.
func (c *Cluster) Links() []LinkState {
	var all []LinkState
	add := func(of string) {
		if !slices.ContainsFunc(all, func(l LinkState) bool { return l.Of == of }) {
			all = append(all, LinkState{of, cmp.Or(c.linkStates[of], "up")})
		}
	}
	for _, s := range c.Segments {
		add(labfile.SegmentLink + "/" + s.Name)
	}
	for _, s := range c.Segments {
		for _, n := range s.NICs {
			if m := c.ownerOf(n); m != "" && !strings.HasPrefix(m, "pod/") {
				add(m + "@" + s.Name)
			}
		}
	}
	return all
}
