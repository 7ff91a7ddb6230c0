package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// maxComment is the longest comment in bytes: an option's length has 16 bits.
const maxComment = math.MaxUint16

// Writer writes a pcapng file of Ethernet frames. The file depends only on what
// is written: it names no machine and has no clock.
type Writer struct {
	// pcapgo writes the head and the interfaces, and this package the packets, of
	// which there are millions, into the same buffer.
	w      *pcapgo.NgWriter
	buf    *bufio.Writer
	ifaces int
}

// NewWriter writes the head of a file with one interface for each name, at
// least one. Packets name theirs by its index. The caller closes w itself,
// after [Writer.Close].
func NewWriter(w io.Writer, ifaces ...string) (*Writer, error) {
	if len(ifaces) == 0 {
		return nil, errors.New("a pcapng file needs at least one interface")
	}
	// pcapgo uses a bufio.Writer that it is given.
	buf := bufio.NewWriterSize(w, writeBuffer)
	ng, err := pcapgo.NewNgWriterInterface(buf, iface(ifaces[0]),
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "winlab"}})
	if err != nil {
		return nil, err
	}
	for _, name := range ifaces[1:] {
		if _, err := ng.AddInterface(iface(name)); err != nil {
			return nil, err
		}
	}
	return &Writer{w: ng, buf: buf, ifaces: len(ifaces)}, nil
}

// AddInterface adds an interface for packets that are written from now on and
// returns its index.
func (w *Writer) AddInterface(name string) (int, error) {
	i, err := w.w.AddInterface(iface(name))
	if err != nil {
		return 0, err
	}
	w.ifaces = i + 1
	return i, nil
}

func iface(name string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: cut(name), LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
}

// cut makes a text fit into an option: UTF-8 of at most maxComment bytes.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxComment {
		s = strings.ToValidUTF8(s[:maxComment-len("…")], "") + "…"
	}
	return s
}

// Comment is a comment as a file has it, made once for all packets that get it. The
// zero Comment writes no comment.
type Comment struct{ options []byte }

// NewComment makes a comment. One longer than 65535 bytes is cut; "" gives the zero Comment.
func NewComment(text string) Comment {
	if text == "" {
		return Comment{}
	}
	text = cut(text)
	le := binary.LittleEndian
	b := le.AppendUint16(make([]byte, 0, len(text)+12), optionComment)
	b = le.AppendUint16(b, uint16(len(text)))
	b = append(b, text...)
	b = append(b, zeros[:padding(len(text))]...)
	return Comment{append(b, zeros[:]...)} // and the end of the options
}

// Of the pcapng format (draft-ietf-opsawg-pcapng), sizes in bytes.
const (
	blockEnhancedPacket = 6
	optionComment       = 1
	packetHead          = 28 // of an enhanced packet block, before the data
	blockTail           = 4
)

var zeros [4]byte

// padding is how many bytes fill n up to a multiple of four.
func padding(n int) int { return -n & 3 }

// Write adds a frame. The zero time is the start of 1970; times that 64 bits of
// nanoseconds after that cannot hold are an error. A comment longer than 65535
// bytes is cut; "" writes none.
func (w *Writer) Write(iface int, ts time.Time, frame []byte, comment string) error {
	return w.WriteWith(iface, ts, frame, NewComment(comment))
}

// WriteWith is [Writer.Write] with a comment that is there already.
func (w *Writer) WriteWith(iface int, ts time.Time, frame []byte, comment Comment) error {
	if iface < 0 || iface >= w.ifaces {
		return fmt.Errorf("interface %d is not one of the %d of the file", iface, w.ifaces)
	}
	var at uint64
	if !ts.IsZero() {
		if s := ts.Unix(); s < 0 || s >= math.MaxInt64/int64(time.Second) {
			return fmt.Errorf("time %v does not fit into the file", ts)
		}
		at = uint64(ts.UnixNano())
	}
	n := len(frame)
	length := uint32(packetHead + n + padding(n) + len(comment.options) + blockTail)
	if w.buf.Available() < int(length) {
		if err := w.buf.Flush(); err != nil {
			return err
		}
	}
	le := binary.LittleEndian
	b := w.buf.AvailableBuffer()
	b = le.AppendUint32(b, blockEnhancedPacket)
	b = le.AppendUint32(b, length)
	b = le.AppendUint32(b, uint32(iface))
	b = le.AppendUint32(b, uint32(at>>32))
	b = le.AppendUint32(b, uint32(at))
	b = le.AppendUint32(b, uint32(n))
	b = le.AppendUint32(b, uint32(n))
	b = append(b, frame...)
	b = append(b, zeros[:padding(n)]...)
	b = append(b, comment.options...)
	b = le.AppendUint32(b, length)
	_, err := w.buf.Write(b)
	return err
}

// Close writes out what is buffered. It does not close the underlying writer.
func (w *Writer) Close() error { return w.w.Flush() }
