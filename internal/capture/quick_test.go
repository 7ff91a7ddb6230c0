package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// readBy reads a file with the quick way or without it, in pieces as the reader gives them.
func readBy(in io.Reader, quick bool) (got []record, err error) {
	r, err := Open(in)
	if err != nil {
		return nil, err
	}
	if !quick {
		r.order = nil
	}
	for {
		data, info, err := r.Next()
		if err != nil {
			return got, err
		}
		got = append(got, record{bytes.Clone(data), info})
	}
}

func checkSameRecords(t *testing.T, file []byte) {
	t.Helper()
	slow, slowErr := readBy(bytes.NewReader(file), false)
	for name, in := range map[string]io.Reader{"whole": bytes.NewReader(file), "half": iotest.HalfReader(bytes.NewReader(file)),
		"bytes": iotest.OneByteReader(bytes.NewReader(file))} {
		fast, fastErr := readBy(in, true)
		if fmt.Sprint(fastErr) != fmt.Sprint(slowErr) {
			t.Fatalf("%s: quick ends with %v, pcapgo with %v", name, fastErr, slowErr)
		}
		if !slices.EqualFunc(fast, slow, func(a, b record) bool { return a.info == b.info && bytes.Equal(a.data, b.data) }) {
			t.Fatalf("%s: quick reads\n%+v\npcapgo\n%+v", name, fast, slow)
		}
	}
}

// TestQuickIsPcapgo reads files with the quick way and with pcapgo alone: every length,
// several sections, both units of time, the other byte order, bytes that are wrong.
func TestQuickIsPcapgo(t *testing.T) {
	var units bytes.Buffer
	w, _ := pcapgo.NewNgWriter(&units, layers.LinkTypeEthernet)
	_ = w.WritePacket(gopacket.CaptureInfo{Timestamp: epoch, CaptureLength: 3, Length: 60}, []byte{1, 2, 3})
	_ = w.Flush()
	files := map[string][]byte{
		"pcapng": ngFile(t, 9), "sections": slices.Concat(ngFile(t, 3), ngFile(t, 4)), "cut short": units.Bytes(),
		"micro": pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, 9), "nano": pcapFile(binary.LittleEndian, 0xa1b23c4d, 1, 9),
		"big": pcapFile(binary.BigEndian, 0xa1b2c3d4, 1, 9), "long": slices.Concat(ngFile(t, 700)),
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			checkSameRecords(t, file)
			for cut := range min(len(file), 100) {
				checkSameRecords(t, file[:len(file)-cut])
			}
		})
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 { // one byte is another
		for _, name := range []string{"sections", "micro", "nano", "cut short"} {
			f := bytes.Clone(files[name])
			f[rnd.IntN(min(len(f), 600))] = byte(rnd.Uint32())
			checkSameRecords(t, f)
		}
	}
}

// The quick way must be taken: a test that compares it with itself shows nothing.
func TestQuickIsTaken(t *testing.T) {
	for name, file := range map[string][]byte{"pcap": millionPcap()[:24+80*5], "pcapng": func() []byte {
		var b bytes.Buffer
		w, _ := NewWriter(&b, "a", "b")
		for i := range 5 {
			_ = w.Write(i%2, epoch, frame(i, i), "")
		}
		_ = w.Close()
		return b.Bytes()
	}()} {
		r, err := Open(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = r.Next() // reads the interfaces
		for i := range 4 {
			if _, ok := r.quick(&Info{}); !ok {
				t.Errorf("%s: packet %d takes the slow way", name, i+2)
			}
		}
	}
}

func FuzzQuick(f *testing.F) {
	f.Add(ngFile(f, 4))
	f.Add(slices.Concat(ngFile(f, 3), ngFile(f, 4)))
	f.Add(pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, 3))
	f.Add(pcapFile(binary.LittleEndian, 0xa1b23c4d, 1, 3))
	f.Fuzz(func(t *testing.T, file []byte) { checkSameRecords(t, file) })
}

// The blocks of packets are those that pcapgo writes, byte for byte.
func TestWriterIsPcapgo(t *testing.T) {
	comments := []string{"", "a", "ab", "abc", "delivered ✓", "\xff", strings.Repeat("é", 40000), strings.Repeat("x", 65535)}
	var got, want bytes.Buffer
	w, err := NewWriter(&got, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	ng, err := pcapgo.NewNgWriterInterface(&want, iface("a"), pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "winlab"}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = ng.AddInterface(iface("b"))
	for i := range 400 {
		on, data, c := i%2, make([]byte, i*7), comments[i%len(comments)]
		at := epoch.Add(time.Duration(i) * time.Nanosecond)
		if i%11 == 0 {
			at = time.Time{}
		}
		if i == 100 {
			on, _ = w.AddInterface("c")
			_, _ = ng.AddInterface(iface("c"))
		}
		if err := w.Write(on, at, data, c); err != nil {
			t.Fatal(err)
		}
		if at.IsZero() {
			at = time.Unix(0, 0)
		}
		var o pcapgo.NgPacketOptions
		if c != "" {
			o.Comments = []string{cut(c)}
		}
		if err := ng.WritePacketWithOptions(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(data), Length: len(data), InterfaceIndex: on},
			data, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = ng.Flush()
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes, pcapgo writes %d, and they differ", got.Len(), want.Len())
	}
}
