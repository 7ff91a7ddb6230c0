package hcn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestGUIDHasTheLayoutOfWindows(t *testing.T) {
	g, err := ParseGUID("{00112233-4455-6677-8899-AABBCCDDEEFF}")
	if err != nil {
		t.Fatal(err)
	}
	want := GUID{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	if g != want {
		t.Errorf("got % x, want % x", g[:], want[:])
	}
	if s := g.String(); s != "00112233-4455-6677-8899-aabbccddeeff" {
		t.Errorf("String is %q", s)
	}
	if s := (GUID{}).String(); s != "" {
		t.Errorf("the zero GUID is %q; it means no id", s)
	}
	for _, bad := range []string{"", "00112233-4455-6677-8899-AABBCCDDEEF", "00112233-4455-6677-8899-AABBCCDDEEFG", "cbr0"} {
		if _, err := ParseGUID(bad); err == nil {
			t.Errorf("ParseGUID(%q) took it", bad)
		}
	}
}

func TestFramesComeBack(t *testing.T) {
	g, err := ParseGUID("00112233-4455-6677-8899-aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	requests := []*request{
		{},
		{Seq: 1, Verb: verbEnumerate, Kind: Network, Texts: []string{"{}"}},
		{Seq: 0xffffffff, Verb: verbOpen, Kind: SdnRoute, Handle: 1 << 63, ID: g},
		{Seq: 7, Verb: verbHNSCall, Texts: []string{"GET", "/networks/", "ü€😀\x00"}},
	}
	var stream []byte
	for _, r := range requests {
		stream = appendRequest(stream, r)
	}
	in := bytes.NewReader(stream)
	come := frames{most: maxRequest}
	for _, want := range requests {
		got, err := parseRequest(must(come.read(in))(t))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("request (-sent +read):\n%s", d)
		}
	}
	if _, err := come.read(in); err != io.EOF {
		t.Errorf("after the last frame: %v", err)
	}
	want := &response{Seq: 9, HResult: 0x803b0001, Handle: 8, Output: "out", Record: "record"}
	got, err := parseResponse(appendResponse(nil, want)[4:])
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("response (-sent +read):\n%s", d)
	}
}

func TestMalformedFrames(t *testing.T) {
	good := appendRequest(nil, &request{Seq: 1, Verb: verbCreate, Kind: Network, Texts: []string{"settings"}})[4:]
	long := bytes.Clone(good)
	binary.LittleEndian.PutUint32(long[31:], 0xffffffff)
	many := bytes.Clone(good)
	many[30] = 200
	for name, body := range map[string][]byte{
		"empty": nil, "short": good[:30], "text cut": good[:len(good)-1], "text too long": long, "200 texts": many,
		"more behind": append(bytes.Clone(good), 0),
	} {
		if r, err := parseRequest(body); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
	if _, err := (&frames{most: maxRequest}).read(strings.NewReader("\xff\xff\xff\xff")); err == nil {
		t.Error("a frame of 4 GiB was begun")
	}
	in := frames{most: maxRequest}
	if _, err := in.read(strings.NewReader("\x00\x00\x00\x01abc")); err != io.ErrUnexpectedEOF || len(in.buf) > 1<<16 {
		t.Errorf("a frame that ends early: %v, %d bytes taken", err, len(in.buf))
	}
}

// FuzzWire reads any bytes as a conversation. What can be read must come back
// the same when it is written again.
func FuzzWire(f *testing.F) {
	f.Add(appendHello(nil, "kube-proxy.exe/312"))
	f.Add(appendRequest(nil, &request{Seq: 1, Verb: verbHNSCall, Texts: []string{"GET", "/globals/version", ""}}))
	f.Add(appendResponse(nil, &response{Seq: 1, HResult: 0x80070006, Record: "{}"}))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, name, err := readHello(bytes.NewReader(data)); err == nil && len(name) > maxName {
			t.Errorf("a name of %d bytes", len(name))
		}
		body, err := (&frames{most: maxRequest}).read(bytes.NewReader(data))
		// Bytes that come one by one are the same frame.
		again, slow := (&frames{most: maxRequest}).read(iotest.OneByteReader(bytes.NewReader(data)))
		if !bytes.Equal(body, again) || fmt.Sprint(err) != fmt.Sprint(slow) {
			t.Errorf("% x, %v; byte by byte % x, %v", body, err, again, slow)
		}
		if err != nil {
			return
		}
		if r, err := parseRequest(body); err == nil && !bytes.Equal(appendRequest(nil, r)[4:], body) {
			t.Errorf("request %+v is not written again as % x", r, body)
		}
		if r, err := parseResponse(body); err == nil && !bytes.Equal(appendResponse(nil, r)[4:], body) {
			t.Errorf("response %+v is not written again as % x", r, body)
		}
	})
}
