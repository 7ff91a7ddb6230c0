package flow

import (
	"fmt"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// sendsAgain is the second packet of a connection.
type sendsAgain struct{ after time.Duration }

func (e sendsAgain) Text() string {
	if e.after > 0 {
		return fmt.Sprintf("the connection is established; after %s the program sends again", e.after)
	}
	return "the connection is established; the program sends again"
}

// hnsCalled is a call to HNS in the middle of a connection.
type hnsCalled struct{ what string }

func (e hnsCalled) Text() string { return e.what }

// stepDone is a step of the lab in the life of a connection.
type stepDone struct {
	name string
	does []string
}

func (e stepDone) Text() string {
	if len(e.does) == 0 {
		return "step " + e.name
	}
	return "step " + e.name + ": " + strings.Join(e.does, "; ")
}

// sendsOn is a later packet of a named connection.
type sendsOn struct{ connection, sends, by string }

func (e sendsOn) Text() string {
	who, what := "the program", "sends again"
	if e.by != "" {
		who = "the other end"
		what = "sends data"
	}
	switch e.sends {
	case labfile.SendFin:
		what = "sends its FIN: it has no more data to send"
	case labfile.SendReset:
		what = "resets the connection"
	}
	return "connection " + e.connection + ": " + who + " " + what
}

// tupleAgain is a connection with the 5-tuple of an earlier one.
type tupleAgain struct {
	earlier string
	tuple   packet.Tuple
}

func (e tupleAgain) Text() string {
	return "connection " + e.earlier + " had the same 5-tuple, " + e.tuple.String()
}

// sendsData is a connection that is open, and on which the sender writes now.
type sendsData struct{ size int }

func (e sendsData) Text() string {
	return fmt.Sprintf("the connection is open; the sender writes %d bytes", e.size)
}
