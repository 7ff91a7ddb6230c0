package labfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/strict"
)

// Link is what is wrong with a segment, or with the cables of a machine. One with
// nothing but its name is a link without faults; what an earlier entry said of the
// same link does not count any more.
type Link struct {
	// Of is "segment/nodes", or a machine outside the pods: "node/win1", "host/lan",
	// "router/gw". That is all of its cables, "router/gw@internet" the one on a segment.
	Of string `yaml:"of"`
	// Down carries nothing.
	Down bool `yaml:"down,omitempty"`
	// Delay is how long a frame takes in each direction, "20ms", give or take up to
	// Jitter.
	Delay  string `yaml:"delay,omitempty"`
	Jitter string `yaml:"jitter,omitempty"`
	// Loss is the share of the frames that are lost, "2.5%".
	Loss string `yaml:"loss,omitempty"`
	// Rate is the bits per second, as tc writes them: "10mbit", "1gbit", "56kbit".
	Rate string `yaml:"rate,omitempty"`
}

// The kinds of links.
const (
	SegmentLink = "segment"
	NodeLink    = "node"
	HostLink    = "host"
	RouterLink  = "router"
)

// ParseLinkName reads "segment/nodes" or "router/gw@internet".
func ParseLinkName(text string) (kind, name, on string, err error) {
	kind, rest, ok := strings.Cut(text, "/")
	name, on, at := strings.Cut(rest, "@")
	if !ok || name == "" || at && (on == "" || kind == SegmentLink) ||
		!slices.Contains([]string{SegmentLink, NodeLink, HostLink, RouterLink}, kind) {
		return "", "", "",
			fmt.Errorf("%q is not a link; write segment/NAME, node/NAME, host/NAME or router/NAME, and for one cable of a machine node/NAME@SEGMENT",
				text)
	}
	return kind, name, on, nil
}

// LinkState is a link's state in units: seconds as durations, the loss as a share from
// 0 to 1, the rate in bits per second.
type LinkState struct {
	Delay, Jitter time.Duration
	Loss          float64
	Rate          uint64
}

// longest bounds the delay of a link: nothing slower is a network.
const longest = time.Minute

// State reads the texts of a link. An error is about one of them, whose key it names.
func (l Link) State() (s LinkState, key string, err error) {
	if s.Delay, err = parseDelay(l.Delay); err != nil {
		return s, "delay", err
	}
	if s.Jitter, err = parseDelay(l.Jitter); err != nil {
		return s, "jitter", err
	}
	if s.Jitter > s.Delay {
		return s, "jitter", fmt.Errorf("jitter %s is more than the delay %s; a frame cannot arrive before it is sent", s.Jitter, s.Delay)
	}
	if s.Loss, err = parseLoss(l.Loss); err != nil {
		return s, "loss", err
	}
	if s.Rate, err = parseRate(l.Rate); err != nil {
		return s, "rate", err
	}
	if l.Down && s != (LinkState{}) {
		return s, "down", fmt.Errorf("a link that is down cannot have delay, jitter, loss or rate")
	}
	return s, "", nil
}

func parseDelay(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("%q is not the delay of a link; write it as 20ms, at most %s", text, longest)
	}
	return d, nil
}

func parseLoss(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, ok := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(f >= 0 && f <= 100) {
		return 0, fmt.Errorf("%q is not a share of frames; write it as 5%% or 0.1%%", text)
	}
	return f / 100, nil
}

// rateUnits are those of tc(8) for bits.
var rateUnits = []struct {
	suffix string
	times  float64
}{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}}

// The bounds of a rate in bits per second: below the first a frame would take minutes.
const (
	slowest = 1e3
	fastest = 1e12
)

func parseRate(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	low := strings.ToLower(text)
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(low, u.suffix)
		if !ok {
			continue
		}
		if f, err := strconv.ParseFloat(number, 64); err == nil && f*u.times >= slowest && f*u.times <= fastest {
			return uint64(f * u.times), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is not the rate of a link; write it as 10mbit, 1gbit or 56kbit, at least 1kbit", text)
}

// Text says what is wrong with a link: "delay 20ms, loss 5%"; "up" for nothing.
func (l Link) Text() string {
	var all []string
	if l.Down {
		all = append(all, "down")
	}
	for _, f := range [][2]string{{"delay ", l.Delay}, {"jitter ", l.Jitter}, {"loss ", l.Loss}, {"rate ", l.Rate}} {
		if f[1] != "" {
			all = append(all, f[0]+f[1])
		}
	}
	if len(all) == 0 {
		return "up"
	}
	return strings.Join(all, ", ")
}

// links complains about links that are not there, and about their states.
func (v *validator) links(path []any, links []Link, s *Spec) {
	seen := map[string]bool{}
	for i, l := range links {
		at := sub(path, i)
		if seen[l.Of] {
			v.add(at, "%s is listed twice", l.Of)
		}
		seen[l.Of] = true
		if err := s.CheckLink(l.Of); err != nil {
			v.add(sub(at, "of"), "%v", err)
		}
		if _, key, err := l.State(); err != nil {
			v.add(sub(at, key), "%v", err)
		}
	}
}

// CheckLink complains about a link that the lab does not have.
func (s *Spec) CheckLink(of string) error {
	kind, name, on, err := ParseLinkName(of)
	if err != nil {
		return err
	}
	segments := s.segmentsOf()
	names := []string{}
	switch kind {
	case SegmentLink:
		for _, g := range s.Fabric.Segments {
			names = append(names, g.Name)
		}
	case NodeLink:
		names = s.nodeNames()
	case HostLink:
		for _, h := range s.Hosts {
			names = append(names, h.Name)
		}
	case RouterLink:
		for _, r := range s.Fabric.Routers {
			names = append(names, r.Name)
		}
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("%s: there is no %s %s in this lab%s", of, kind, name, strict.DidYouMean(name, names))
	}
	if have := segments[kind+"/"+name]; on != "" && !slices.Contains(have, on) {
		return fmt.Errorf("%s: %s %s is not on segment %s%s", of, kind, name, on, strict.DidYouMean(on, have))
	}
	return nil
}

// segmentsOf are the segments that each machine is on, by its link's name.
func (s *Spec) segmentsOf() map[string][]string {
	m := map[string][]string{}
	for _, n := range s.Nodes {
		m[NodeLink+"/"+n.Name] = []string{n.Segment}
	}
	for _, h := range s.Hosts {
		m[HostLink+"/"+h.Name] = []string{h.Segment}
	}
	for _, r := range s.Fabric.Routers {
		for _, f := range r.Interfaces {
			m[RouterLink+"/"+r.Name] = append(m[RouterLink+"/"+r.Name], f.Segment)
		}
	}
	return m
}
