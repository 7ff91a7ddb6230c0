package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// maxComment is the longest comment in bytes: an option's length has 16 bits.
const maxComment = math.MaxUint16

// Writer writes a pcapng file of Ethernet frames. The file depends only on what
// is written: it names no machine and has no clock.
type Writer struct {
	w      *pcapgo.NgWriter
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
	ng, err := pcapgo.NewNgWriterInterface(bufio.NewWriterSize(w, bufferSize), iface(ifaces[0]),
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "winlab"}})
	if err != nil {
		return nil, err
	}
	for _, name := range ifaces[1:] {
		if _, err := ng.AddInterface(iface(name)); err != nil {
			return nil, err
		}
	}
	return &Writer{w: ng, ifaces: len(ifaces)}, nil
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

// Write adds a frame. The zero time is the start of 1970; times that 64 bits of
// nanoseconds after that cannot hold are an error. A comment longer than 65535
// bytes is cut; "" writes none.
func (w *Writer) Write(iface int, ts time.Time, frame []byte, comment string) error {
	if iface < 0 || iface >= w.ifaces {
		return fmt.Errorf("interface %d is not one of the %d of the file", iface, w.ifaces)
	}
	if ts.IsZero() {
		ts = time.Unix(0, 0)
	}
	if s := ts.Unix(); s < 0 || s >= math.MaxInt64/int64(time.Second) {
		return fmt.Errorf("time %v does not fit into the file", ts)
	}
	ci := gopacket.CaptureInfo{Timestamp: ts, CaptureLength: len(frame), Length: len(frame), InterfaceIndex: iface}
	if comment == "" {
		return w.w.WritePacket(ci, frame)
	}
	return w.w.WritePacketWithOptions(ci, frame, pcapgo.NgPacketOptions{Comments: []string{cut(comment)}})
}

// Close writes out what is buffered. It does not close the underlying writer.
func (w *Writer) Close() error { return w.w.Flush() }
