package hcn

import (
	"encoding/binary"
	"fmt"
	"io"
)

// frames takes bytes as they come and gives whole frames. It takes memory only for bytes that
// have come, so a wrong length costs nothing, and gives back that of a long frame.
type frames struct {
	most       uint32 // bytes of a frame
	buf        []byte
	begin, end int // what has arrived but is not a frame yet
}

// The memory of frames: how much it begins with, and how much it holds between two frames.
const (
	firstRoom = 16 << 10
	keptRoom  = 1 << 20
)

// room returns where the next bytes go; a frame that next has returned is gone then.
func (f *frames) room() []byte {
	switch {
	case f.begin == f.end:
		f.begin, f.end = 0, 0
		if len(f.buf) > keptRoom {
			f.buf = nil
		}
	case f.end == len(f.buf) && f.begin > 0:
		f.end = copy(f.buf, f.buf[f.begin:])
		f.begin = 0
	}
	if f.end == len(f.buf) {
		longer := make([]byte, max(firstRoom, 2*len(f.buf)))
		copy(longer, f.buf)
		f.buf = longer
	}
	return f.buf[f.end:]
}

// came says how many bytes are in the room.
func (f *frames) came(n int) { f.end += n }

// begun reports whether a part of a frame has come.
func (f *frames) begun() bool { return f.end > f.begin }

// next returns what follows the length of the next frame, nil when the frame is incomplete.
func (f *frames) next() ([]byte, error) {
	have := f.buf[f.begin:f.end]
	if len(have) < 4 {
		return nil, nil
	}
	n := binary.LittleEndian.Uint32(have)
	if n > f.most {
		return nil, fmt.Errorf("%w: %d bytes; the limit is %d", errMalformed, n, f.most)
	}
	if uint64(len(have)) < 4+uint64(n) {
		return nil, nil
	}
	f.begin += 4 + int(n)
	return have[4 : 4+n : 4+n], nil
}

// read reads until a frame is whole.
func (f *frames) read(r io.Reader) ([]byte, error) {
	for {
		if body, err := f.next(); body != nil || err != nil {
			return body, err
		}
		n, err := r.Read(f.room())
		f.came(n)
		if n == 0 && err != nil {
			return nil, f.ended(err)
		}
	}
}

// ended is the error of a connection that ended with err: an end in the middle of a frame
// is unexpected.
func (f *frames) ended(err error) error {
	if f.begun() {
		return unexpectedEOF(err)
	}
	return err
}
