package trace

// Detail is what happened in a step, as typed data: numbers, addresses and names. It
// becomes text only when the trace is read.
type Detail interface {
	// Text says what happened in a few words, without a full stop.
	Text() string
}

// Event is the detail of a step. In JSON it is its text; read back, it is a
// note. The zero Event has no text.
type Event struct{ Detail }

// Of returns the event with a detail.
func Of(d Detail) Event { return Event{d} }

// note is an event of which only the text is known.
type note string

func (n note) Text() string { return string(n) }

// Note returns an event that is only a text.
func Note(text string) Event { return Event{note(text)} }

// Text returns the detail's text; "" when there is none.
func (e Event) Text() string {
	if e.Detail == nil {
		return ""
	}
	return e.Detail.Text()
}

// MarshalText returns the text.
func (e Event) MarshalText() ([]byte, error) { return []byte(e.Text()), nil }

// UnmarshalText makes the event a note.
func (e *Event) UnmarshalText(text []byte) error {
	*e = Note(string(text))
	return nil
}

// Text says what happened in a few words; "" when the step has no event.
func (s *Step) Text() string { return s.Event.Text() }
