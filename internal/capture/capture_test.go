package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

var epoch = time.Date(2021, 3, 4, 5, 6, 7, 123456000, time.UTC)

// frame returns a frame with a payload of n bytes that depends on i.
func frame(i, n int) []byte {
	return packet.Build(packet.Spec{
		Src: netip.MustParseAddr("10.244.1.4"), Dst: netip.MustParseAddr("10.96.0.10"),
		Proto: packet.UDP, SrcPort: uint16(40000 + i), DstPort: 53, Payload: make([]byte, n),
	}).Bytes()
}

// pcapFile writes n frames as pcap in the byte order of the magic.
func pcapFile(order binary.ByteOrder, magic, link uint32, n int) []byte {
	var b []byte
	put := func(v ...uint32) {
		for _, x := range v {
			b = append(b, 0, 0, 0, 0)
			order.PutUint32(b[len(b)-4:], x)
		}
	}
	put(magic, 0, 0, 0, 65535, link)
	order.PutUint16(b[4:], 2)
	order.PutUint16(b[6:], 4)
	frac := uint32(epoch.Nanosecond() / 1000)
	if magic == 0xa1b23c4d {
		frac *= 1000
	}
	for i := range n {
		f := frame(i, i)
		put(uint32(epoch.Unix()), frac, uint32(len(f)), uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

func ngFile(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, "pod/client", "vport 7", "nic")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		comment := ""
		if i%2 == 0 {
			comment = fmt.Sprintf("delivered %d ✓", i)
		}
		if err := w.Write(i%3, epoch.Add(time.Duration(i)), frame(i, i), comment); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type record struct {
	data []byte
	info Info
}

func readAll(t testing.TB, file []byte) ([]record, error) {
	t.Helper()
	r, err := Open(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	var out []record
	for {
		data, info, err := r.Next()
		if err != nil {
			if _, _, again := r.Next(); again != err {
				t.Errorf("the error %v does not stay: %v", err, again)
			}
			return out, err
		}
		out = append(out, record{bytes.Clone(data), info})
	}
}

func TestReadPcap(t *testing.T) {
	for _, c := range []struct {
		name  string
		order binary.ByteOrder
		magic uint32
	}{
		{"little endian, microseconds", binary.LittleEndian, 0xa1b2c3d4}, {"big endian, microseconds", binary.BigEndian, 0xa1b2c3d4},
		{"little endian, nanoseconds", binary.LittleEndian, 0xa1b23c4d}, {"big endian, nanoseconds", binary.BigEndian, 0xa1b23c4d},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readAll(t, pcapFile(c.order, c.magic, 1, 5))
			if err != io.EOF || len(got) != 5 {
				t.Fatalf("%d packets, %v", len(got), err)
			}
			for i, g := range got {
				want := Info{Number: i + 1, Time: epoch, Length: len(frame(i, i))}
				if !bytes.Equal(g.data, frame(i, i)) || g.info != want {
					t.Errorf("packet %d: %x %+v, want %+v", i+1, g.data, g.info, want)
				}
			}
		})
	}
}

func TestRoundTrip(t *testing.T) {
	got, err := readAll(t, ngFile(t, 7))
	if err != io.EOF || len(got) != 7 {
		t.Fatalf("%d packets, %v", len(got), err)
	}
	names := []string{"pod/client", "vport 7", "nic"}
	for i, g := range got {
		want := Info{Number: i + 1, Time: epoch.Add(time.Duration(i)), Length: len(frame(i, i)), Name: names[i%3]}
		if i%2 == 0 {
			want.Comment = fmt.Sprintf("delivered %d ✓", i)
		}
		if !bytes.Equal(g.data, frame(i, i)) || g.info != want {
			t.Errorf("packet %d: %+v, want %+v", i+1, g.info, want)
		}
	}
}

// What is written depends on nothing but what was given.
func TestWriterIsDeterministic(t *testing.T) {
	f := ngFile(t, 3)
	if !bytes.Equal(f, ngFile(t, 3)) {
		t.Error("two runs differ")
	}
	for _, s := range []string{"linux", "amd64", "arm64", "windows"} {
		if bytes.Contains(f, []byte(s)) {
			t.Errorf("the file names %q", s)
		}
	}
}

// Two sections: the names of the second are not those of the first.
func TestSections(t *testing.T) {
	var b bytes.Buffer
	w, _ := NewWriter(&b, "other")
	if err := w.Write(0, time.Time{}, frame(0, 0), ""); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	got, err := readAll(t, append(ngFile(t, 3), b.Bytes()...))
	if err != io.EOF || len(got) != 4 || got[3].info.Name != "other" || got[3].info.Number != 4 || got[3].info.Time.Unix() != 0 {
		t.Errorf("%v %+v", err, got)
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "it has only 0 bytes"},
		{"gzip", "\x1f\x8b\x08\x00\x00", "compressed with gzip; unpack it first"},
		{"zstd", "\x28\xb5\x2f\xfd\x00", "compressed with zstd"},
		{"text", "hello world", "it begins with 68656c6c, which is neither pcap nor pcapng"},
		{"snoop", "snoop\x00\x00\x00", "snoop file; convert it"},
		{"pcap head", "\xd4\xc3\xb2\xa1\x02\x00", "the pcap header is cut off"},
		{"pcapng head", "\x0a\x0d\x0d\x0a\x1c\x00", "the pcapng header is cut off"},
		{"pcap version", "\xd4\xc3\xb2\xa1\x09\x00\x04\x00" + strings.Repeat("\x00", 16), "the pcap header is wrong: Unknown major version 9"},
		{"link type", string(pcapFile(binary.LittleEndian, 0xa1b2c3d4, 101, 1)), "the link type is 101 (Raw); only Ethernet (1) is read"},
	} {
		_, err := Open(strings.NewReader(c.file))
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// A second interface of another link type is an error at its first packet.
func TestNgLinkType(t *testing.T) {
	var b bytes.Buffer
	w, _ := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	_, _ = w.AddInterface(pcapgo.NgInterface{LinkType: layers.LinkTypeLinuxSLL})
	for i := range 2 {
		_ = w.WritePacket(gopacket.CaptureInfo{Timestamp: epoch, CaptureLength: 4, Length: 4, InterfaceIndex: i}, make([]byte, 4))
	}
	_ = w.Flush()
	got, err := readAll(t, b.Bytes())
	var pe *PacketError
	if len(got) != 1 || !errors.As(err, &pe) || pe.packet != 2 || !strings.Contains(err.Error(), "the link type is 113") {
		t.Errorf("%d packets, %v", len(got), err)
	}
}

// Wherever a file is cut, the packets before the cut come out, and the error
// accounts for every byte after them.
func TestTruncated(t *testing.T) {
	for name, file := range map[string][]byte{
		"pcap": pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, 4), "pcapng": ngFile(t, 4),
	} {
		whole := map[int64]int{} // offset at which a packet ends: packets up to there
		r, err := Open(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		whole[r.offset()] = 0
		for {
			if _, _, err := r.Next(); err != nil {
				break
			}
			whole[r.offset()] = r.packets
		}
		seen := 0
		for cut := range len(file) {
			got, err := readAll(t, file[:cut])
			var fe *FormatError
			if errors.As(err, &fe) {
				continue // cut within the head
			}
			for off, n := range whole {
				if off <= int64(cut) {
					seen = max(seen, n)
				}
			}
			if len(got) != seen {
				t.Fatalf("%s cut at %d: %d packets, want %d", name, cut, len(got), seen)
			}
			var te *TruncatedError
			switch {
			case errors.As(err, &te):
				if te.packets != seen || te.offset+te.skipped != int64(cut) || te.skipped == 0 {
					t.Fatalf("%s cut at %d: %+v", name, cut, te)
				}
			case err == io.EOF:
				if _, ok := whole[int64(cut)]; !ok && name == "pcap" {
					t.Fatalf("%s cut at %d looks like the end of the file", name, cut)
				}
			default:
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			}
		}
	}
}

// A length that the file cannot hold costs no memory.
func TestHostileLength(t *testing.T) {
	pcap := pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, 2)
	binary.LittleEndian.PutUint32(pcap[16:], 0xffffffff) // snap length
	off := 24 + 16 + len(frame(0, 0))
	binary.LittleEndian.PutUint32(pcap[off+8:], 0xfffffff0)
	binary.LittleEndian.PutUint32(pcap[off+12:], 0xfffffff0)
	ng := ngFile(t, 2)
	r, _ := Open(bytes.NewReader(ng))
	_, _, _ = r.Next()
	binary.LittleEndian.PutUint32(ng[r.offset()+20:], 0xfffffff0)
	for name, file := range map[string][]byte{"pcap": pcap, "pcapng": ng} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := readAll(t, file)
		runtime.ReadMemStats(&after)
		if len(got) != 1 || err == io.EOF {
			t.Errorf("%s: %d packets, %v", name, len(got), err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
			t.Errorf("%s: %d bytes for a file of %d", name, n, len(file))
		}
	}
	if _, err := readAll(t, pcap); !strings.HasPrefix(err.Error(), fmt.Sprintf("packet 2 at byte %d: capture length exceeds", off)) {
		t.Error(err)
	}
}

func TestWriteErrors(t *testing.T) {
	if _, err := NewWriter(io.Discard); err == nil {
		t.Error("a file without an interface")
	}
	w, err := NewWriter(io.Discard, "a")
	if err != nil {
		t.Fatal(err)
	}
	if w.Write(1, epoch, nil, "") == nil || w.Write(-1, epoch, nil, "") == nil {
		t.Error("an interface that is not there")
	}
	if w.Write(0, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC), nil, "") == nil || w.Write(0, time.Unix(-1, 0), nil, "") == nil {
		t.Error("a time that does not fit")
	}
	full, err := NewWriter(failing{}, "a")
	if err == nil {
		err = errors.Join(full.Write(0, epoch, make([]byte, 100), "x"), full.Close())
	}
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("the error of the underlying writer is lost: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

// A comment too long for the format is cut at a character.
func TestLongComment(t *testing.T) {
	var b bytes.Buffer
	w, _ := NewWriter(&b, "a")
	if err := w.Write(0, epoch, frame(0, 0), "\xff"+strings.Repeat("é", 40000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(0, epoch, frame(1, 0), "after"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	got, err := readAll(t, b.Bytes())
	if err != io.EOF || len(got) != 2 || got[1].info.Comment != "after" {
		t.Fatalf("%d packets, %v", len(got), err)
	}
	if c := got[0].info.Comment; len(c) > maxComment || !strings.HasSuffix(c, "é…") || !strings.HasPrefix(c, "\uFFFDé") {
		t.Errorf("%d bytes, ends in %q", len(c), c[len(c)-6:])
	}
}

// tshark is the second opinion: it finds frames, interfaces and comments.
func TestTsharkReadsComments(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed; TestRoundTrip checks the same with this package's reader")
	}
	file := filepath.Join(t.TempDir(), "out.pcapng")
	if err := os.WriteFile(file, ngFile(t, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", file, "-t", "ud", "-T", "fields", "-E", "separator=|",
		"-e", "frame.interface_name", "-e", "frame.time_epoch", "-e", "udp.srcport", "-e", "frame.comment").Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 {
		t.Fatalf("tshark reads %d packets:\n%s", len(lines), out)
	}
	for i, want := range []struct{ name, port, comment string }{
		{"pod/client", "40000", "delivered 0 ✓"}, {"vport 7", "40001", ""}, {"nic", "40002", "delivered 2 ✓"},
	} {
		f := strings.Split(lines[i], "|")
		if len(f) != 4 || f[0] != want.name || f[2] != want.port || f[3] != want.comment {
			t.Errorf("tshark reads %q, want %+v", lines[i], want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(ngFile(f, 4))
	f.Add(pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, 3))
	f.Add(pcapFile(binary.BigEndian, 0xa1b23c4d, 1, 3))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := readAll(t, file)
		if err == nil || err.Error() == "" {
			t.Fatal("reading ends with no error")
		}
		total := 0
		var p packet.Packet
		for _, g := range got {
			total += len(g.data)
			_ = p.Load(g.data)
		}
		if total > len(file) {
			t.Fatalf("%d bytes of packets from a file of %d", total, len(file))
		}
		var te *TruncatedError
		if errors.As(err, &te) && (te.offset+te.skipped > int64(len(file)) || te.packets != len(got)) {
			t.Fatalf("%+v for a file of %d bytes with %d packets", te, len(file), len(got))
		}
	})
}
