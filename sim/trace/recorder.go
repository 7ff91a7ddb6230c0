package trace

import (
	"bytes"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Cite fills Evidence and Grade of a step from a fact and returns the step.
func (s Step) Cite(f *evidence.Fact) Step {
	s.Rest(f)
	return s
}

// Rest is Cite for a step that is not copied.
func (s *Step) Rest(f *evidence.Fact) {
	if f != nil {
		s.Evidence, s.Grade = f.ID, f.Grade
	}
}

// Recorder collects the steps of one path. A nil Recorder records nothing, so
// the hot path passes nil and formats nothing: guard every call that builds
// strings with On.
//
// What steps hold besides words of the configuration (frames, changes) is the
// Recorder's, in pieces that many steps share: a step costs no allocation of its own.
type Recorder struct {
	leg   Leg
	steps []Step
	seen  *Seen
	// arrived is the last frame of the request at a stack.
	arrived Arrival

	last    *picture // the frame that was described last
	frames  slab[byte]
	lines   slab[picture]
	changes slab[Change]
}

// typicalSteps is the length of most paths; making room for them at once saves
// copying the steps.
const typicalSteps = 32

// NewRecorder returns a Recorder with room for a number of steps.
func NewRecorder(steps int) *Recorder {
	r := &Recorder{}
	r.Expect(steps)
	return r
}

// Expect makes room for a number of steps in a Recorder that does not have any yet.
func (r *Recorder) Expect(steps int) {
	if steps > 0 && r.steps == nil {
		r.steps = make([]Step, 0, steps)
	}
}

// slab hands out parts of larger pieces of memory.
type slab[T any] struct{ room []T }

// keep copies a list into the slab.
func (s *slab[T]) keep(list []T, piece int) []T {
	n := len(list)
	if n > cap(s.room)-len(s.room) {
		s.room = make([]T, 0, max(n, piece))
	}
	s.room = append(s.room, list...)
	end := len(s.room)
	return s.room[end-n : end : end]
}

// reset makes the slab's last piece free.
func (s *slab[T]) reset() {
	clear(s.room)
	s.room = s.room[:0]
}

// How much of each a slab gets at a time: what a short path needs.
const (
	frameRoom  = 768
	lineRoom   = 8
	changeRoom = 8
)

// picture is a frame as it was when a step showed it.
type picture struct {
	frame []byte
	words func(frame []byte) string
}

func (p *picture) String() string { return p.words(p.frame) }

// Frame is what Describe can show.
type Frame interface {
	// Bytes are those of the frame.
	Bytes() []byte
	// Words returns a function that puts such a frame into one line of text.
	Words() func(frame []byte) string
}

// Describe returns a line about f as it is now. Most steps do not change the packet:
// while the frame stays the same they share the line. On a nil Recorder it returns the
// zero Line.
func (r *Recorder) Describe(f Frame) Line {
	if r == nil {
		return Line{}
	}
	return Line{r.picture(f)}
}

// Copy returns the bytes of f as they are now, for [Step.Frame]. They must not be changed.
func (r *Recorder) Copy(f Frame) []byte {
	if r == nil {
		return nil
	}
	return r.picture(f).frame
}

func (r *Recorder) picture(f Frame) *picture {
	b := f.Bytes()
	if r.last == nil || !bytes.Equal(b, r.last.frame) {
		r.last = &r.lines.keep([]picture{{r.frames.keep(b, frameRoom), f.Words()}}, lineRoom)[0]
	}
	return r.last
}

// Changes keeps a list of changes that the caller goes on using.
func (r *Recorder) Changes(list []Change) []Change {
	if r == nil || len(list) == 0 {
		return nil
	}
	return r.changes.keep(list, changeRoom)
}

// Reset forgets everything, and keeps the room for steps: those that Steps returned are
// not valid any more, nor what they hold.
func (r *Recorder) Reset() {
	clear(r.steps)
	r.frames.reset()
	r.lines.reset()
	r.changes.reset()
	*r = Recorder{steps: r.steps[:0], frames: r.frames, lines: r.lines, changes: r.changes}
}

// On reports whether steps are being recorded.
func (r *Recorder) On() bool { return r != nil }

// SetLeg sets the leg that the following steps belong to.
func (r *Recorder) SetLeg(l Leg) {
	if r != nil {
		r.leg = l
	}
}

// Add appends a step and numbers it.
func (r *Recorder) Add(s Step) { r.Put(&s) }

// Put is Add for a step that the caller does not need any more.
func (r *Recorder) Put(s *Step) {
	if r == nil {
		return
	}
	if r.steps == nil {
		r.steps = make([]Step, 0, typicalSteps)
	}
	s.N = len(r.steps) + 1
	if s.Leg == "" {
		s.Leg = r.leg
	}
	if s.Leg == "" {
		s.Leg = Request
	}
	r.steps = append(r.steps, *s)
}

// Arrive notes that a stack has taken a frame of the request from its link. The last call
// wins.
func (r *Recorder) Arrive(place, object string, f Frame) {
	if r != nil && r.leg != Reply {
		r.arrived = Arrival{place, object, r.Copy(f)}
	}
}

// Arrived returns what Arrive noted last, nil for nothing. It stays as it is until Reset.
func (r *Recorder) Arrived() *Arrival {
	if r == nil || len(r.arrived.Frame) == 0 {
		return nil
	}
	a := r.arrived
	return &a
}

// See notes how the receiver saw the request. The first call wins.
func (r *Recorder) See(s Seen) {
	if r != nil && r.seen == nil {
		r.seen = &s
	}
}

// Steps returns what was recorded.
func (r *Recorder) Steps() []Step {
	if r == nil {
		return nil
	}
	return r.steps
}

// Seen returns how the receiver saw the request, or nil.
func (r *Recorder) Seen() *Seen {
	if r == nil {
		return nil
	}
	return r.seen
}
