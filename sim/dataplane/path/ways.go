package path

// Ways are the flows that were kept in one simulation. They share a count of what has
// happened beside the packets that follow them, so that a flow that was found to hold
// holds as long as nothing has happened and no state on its way is too old. And they know
// of the packets that have followed a flow and that no state has been told of.
//
// A device that changes what a way can rest on says so first ([Ways.Changed]): a counter,
// the end of a state, anything that makes one end sooner. Whoever looks at a state, or lets
// a packet visit the devices, has it told first ([Ways.Settle]). Devices have the Ways from
// the records of packets that visited them. A nil Ways has no flows.
type Ways struct {
	changes uint64
	due     []*Flow // those with packets that the states do not know of
	passing Passing // that a state is told of
}

// NewWays returns Ways without flows.
func NewWays() *Ways { return &Ways{changes: 1} }

// Changed notes that something on which a flow can rest is about to change: the states get
// the packets that have passed until now, and every flow is asked again whether it holds.
func (w *Ways) Changed() {
	if w != nil {
		w.Settle()
		w.changes++
	}
}

// Settle tells the states of the packets that have passed.
func (w *Ways) Settle() {
	if w == nil || len(w.due) == 0 {
		return
	}
	due := w.due
	w.due = nil // a state that is told may look at its device
	for i, f := range due {
		w.passing = f.passed
		f.passed.Packets, f.passed.Bytes = 0, 0
		f.Pass(&w.passing)
		due[i] = nil
	}
	w.due = due[:0]
}

// Take lets a packet follow the flow, and reports whether the flow holds for it.
func (f *Flow) Take(by *Passing) bool {
	w := f.ways
	if f.seen == w.changes && by.Now < f.until {
		p := &f.passed
		if p.Packets == 0 {
			w.due = append(w.due, f)
		}
		p.Now = by.Now
		p.Packets += by.Packets
		p.Bytes += by.Bytes
		return true
	}
	w.Settle()
	if !f.Holds(by.Now) {
		return false
	}
	f.Pass(by)
	if by.changes {
		w.changes++
	}
	f.passed = Passing{Proto: by.Proto, TCPFlags: by.TCPFlags}
	f.seen, f.until = w.changes, f.Until()
	return true
}
