package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The helper and its parent talk over a socket that keeps messages apart. A
// message is JSON and has open files beside it.

// maxMessage bounds one message, in bytes; the kernel's own limit is above.
const maxMessage = 128 << 10

// maxFiles is how many files can be beside one message.
const maxFiles = 8

// request is what the parent asks for. Op says which of the others count.
type request struct {
	ID      uint64
	Op      string
	Name    string     // the namespace, for all but "hello" and "signal"
	Spec    *Spec      `json:",omitempty"`
	Set     *Addresses `json:",omitempty"`
	Network string     `json:",omitempty"`
	Address string     `json:",omitempty"`
	Timeout int64      `json:",omitempty"` // in nanoseconds
	Command *Command   `json:",omitempty"`
	PID     int        `json:",omitempty"`
	Signal  int        `json:",omitempty"`
}

// answer is what the helper says to a request, or with Exit that a program ended.
type answer struct {
	ID    uint64
	Error string `json:",omitempty"`
	// NotFound says that the program to start does not exist.
	NotFound bool  `json:",omitempty"`
	PID      int   `json:",omitempty"`
	Exit     *Exit `json:",omitempty"`
}

// send writes a message with files beside it.
func send(fd int, v any, files ...int) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("a message of %d bytes is longer than %d", len(data), maxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	for {
		err := unix.Sendmsg(fd, data, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// receive reads a message. At the end of the connection the error is
// [errClosed].
func receive(fd int, buf []byte, v any) (files []int, err error) {
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	var n, on int
	for {
		n, on, _, _, err = unix.Recvmsg(fd, buf, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errClosed
	}
	if on > 0 {
		all, err := unix.ParseSocketControlMessage(rights[:on])
		if err != nil {
			return nil, err
		}
		for i := range all {
			got, err := unix.ParseUnixRights(&all[i])
			if err == nil {
				files = append(files, got...)
			}
		}
	}
	if err := json.Unmarshal(buf[:n], v); err != nil {
		closeAll(files)
		return nil, err
	}
	return files, nil
}

var errClosed = errors.New("the other side has ended")

func closeAll(files []int) {
	for _, f := range files {
		_ = unix.Close(f)
	}
}

// fileOf gives a descriptor to the runtime's poller.
func fileOf(fd int, name string) *os.File { return os.NewFile(uintptr(fd), name) }
