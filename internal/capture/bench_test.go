package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// million is a capture of a million frames of 64 bytes.
const million = 1_000_000

func millionPcap() []byte {
	f := append(frame(0, 22), 0, 0)[:64]
	b := pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, 0)
	rec := make([]byte, 16, 80)
	binary.LittleEndian.PutUint32(rec[8:], 64)
	binary.LittleEndian.PutUint32(rec[12:], 64)
	return append(b, bytes.Repeat(append(rec, f...), million)...)
}

func benchRead(b *testing.B, file []byte) {
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open(bytes.NewReader(file))
		n := 0
		for err == nil {
			if _, _, err = r.Next(); err == nil {
				n++
			}
		}
		if err != io.EOF || n != million {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/packet")
}

func BenchmarkReadMillionPcap(b *testing.B) { benchRead(b, millionPcap()) }

func BenchmarkReadMillionPcapng(b *testing.B) {
	var buf bytes.Buffer
	w, _ := NewWriter(&buf, "a")
	f := append(frame(0, 22), 0, 0)[:64]
	for range million {
		_ = w.Write(0, epoch, f, "")
	}
	_ = w.Close()
	benchRead(b, buf.Bytes())
}

func BenchmarkWrite(b *testing.B) {
	w, _ := NewWriter(io.Discard, "a")
	f := append(frame(0, 22), 0, 0)[:64]
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(0, epoch, f, "delivered"); err != nil {
			b.Fatal(err)
		}
	}
}
