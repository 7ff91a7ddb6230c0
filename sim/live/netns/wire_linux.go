package netns

import (
	"os"
)

// The helper and its parent talk over a socket that keeps messages apart, with open
// files beside them.

// request is what the parent asks for. Op says which of the others count.
type request struct {
	ID      uint64
	Op      string
	Name    string     // the namespace, for all but "hello" and "signal"
	Spec    *Spec      `json:",omitempty"`
	Set     *Addresses `json:",omitempty"`
	Network string     `json:",omitempty"`
	Address string     `json:",omitempty"`
	Port    uint16     `json:",omitempty"` // of the sender, 0 for any
	Timeout int64      `json:",omitempty"` // in nanoseconds
	Command *Command   `json:",omitempty"`
	// Container is one to start; Inside is the name of one.
	Container *Container `json:",omitempty"`
	made      *container // it, in the helper
	Inside    string     `json:",omitempty"`
	// Only sends a signal to one process, and not to its group.
	Only   bool `json:",omitempty"`
	PID    int  `json:",omitempty"`
	Signal int  `json:",omitempty"`
}

// answer is what the helper says to a request, or with Exit that a program ended.
type answer struct {
	ID    uint64
	Error string `json:",omitempty"`
	// NotFound says that the program to start does not exist.
	NotFound bool    `json:",omitempty"`
	PID      int     `json:",omitempty"`
	Bound    []Bound `json:",omitempty"`
	Usage    *Usage  `json:",omitempty"`
	Exit     *Exit   `json:",omitempty"`
}

// fileOf gives a descriptor to the runtime's poller.
func fileOf(fd int, name string) *os.File { return os.NewFile(uintptr(fd), name) }
