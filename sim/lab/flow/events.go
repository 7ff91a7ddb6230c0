package flow

import (
	"fmt"
	"time"
)

// sendsAgain is the second packet of a connection.
type sendsAgain struct{ after time.Duration }

func (e sendsAgain) Text() string {
	if e.after > 0 {
		return fmt.Sprintf("the connection stands; %s pass, then the program sends again", e.after)
	}
	return "the connection stands; the program sends again"
}

// hnsCalled is a call to HNS in the middle of a connection.
type hnsCalled struct{ what string }

func (e hnsCalled) Text() string { return e.what }

// complains is what the log of a program says that has to do with the flow.
type complains struct{ text string }

func (e complains) Text() string { return e.text }

// injected is a frame that comes out of a capture.
type injected struct{}

func (injected) Text() string { return "from the capture" }
