package vfp

// Counts are what a rule has decided about since its layers were put on the port:
// packets that matched it, and those of the flows that it made, which follow it without
// being matched again.
type Counts struct {
	// Packets were decided by the rule, Dropped among them went no further there; Bytes
	// is the size of all of them as frames, as they came to the rule's port.
	Packets, Dropped, Bytes uint64
}

// Counts are the rule's. They are up to date after [Port.Count].
func (r *Rule) Counts() Counts { return r.counts }

// Count brings the counts of the port's rules up to date. A unified flow counts its
// packets itself, and its rules get them here, or when it is forgotten.
func (pt *Port) Count() {
	pt.ways.Settle()
	pt.unified.all(pt.settle)
}

// settle gives a unified flow's packets to its rules.
func (pt *Port) settle(u *unified) {
	if u.packets == 0 {
		return
	}
	for _, r := range u.rules {
		pt.counts(r)
		r.counts.Packets += u.packets
		r.counts.Bytes += u.bytes
	}
	u.packets, u.bytes = 0, 0
}

// count counts a packet that has visited the layers, of a size in bytes before they
// changed it; kept says that its unified flow is kept, and goes on counting.
func (ps *passage) count(res Result, size int, kept bool) {
	u := ps.unified
	u.packets, u.bytes = 1, uint64(size)
	if kept {
		return
	}
	ps.port.settle(u)
	if !res.Pass && res.Unknown == "" && ps.rule != nil {
		ps.port.counts(ps.rule)
		ps.rule.counts.Dropped++
	}
}

// counts notes that a rule is about to count, so that a Reset need not look at all rules.
func (pt *Port) counts(r *Rule) {
	if r.counts == (Counts{}) {
		pt.counted = append(pt.counted, r)
	}
}

// keepCounts lets rules go on counting that were put on the port again under the same
// name.
func (pt *Port) keepCounts(old, now []*layerState) {
	pt.counted = pt.counted[:0]
	type name struct {
		layer, group, rule string
		dir                Direction
	}
	counts := map[name]Counts{}
	each := func(layers []*layerState, f func(name, *Rule)) {
		for _, l := range layers {
			for _, g := range l.Groups {
				for _, r := range g.Rules {
					f(name{l.Name, g.Name, r.ID, g.Dir}, r)
				}
			}
		}
	}
	each(old, func(n name, r *Rule) {
		if r.counts != (Counts{}) {
			counts[n] = r.counts
		} else {
			delete(counts, n)
		}
	})
	each(now, func(n name, r *Rule) {
		if r.counts = (Counts{}); len(counts) == 0 {
			return
		}
		if n, there := counts[n]; there {
			r.counts = n
			pt.counted = append(pt.counted, r)
		}
		delete(counts, n) // of two with one name the first
	})
}

// forgetCounts sets all counts to 0.
func (pt *Port) forgetCounts() {
	for _, r := range pt.counted {
		r.counts = Counts{}
	}
	clear(pt.counted)
	pt.counted = pt.counted[:0]
}
