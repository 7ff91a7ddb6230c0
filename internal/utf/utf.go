// Package utf turns the files that Windows writes into UTF-8: Windows
// PowerShell's > and Out-File write UTF-16, and most programs there begin a file
// with a byte order mark.
package utf

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Mark is the byte order mark that a text began with.
type Mark string

// The marks that Decode knows. UTF16 is either order.
const (
	None  Mark = ""
	UTF8  Mark = "a byte order mark"
	UTF16 Mark = "UTF-16"
)

// Decode returns a text in UTF-8 without the mark that it began with. Text without a mark is returned as it is.
func Decode(data []byte) (text string, mark Mark) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return from16(data[2:], binary.LittleEndian), UTF16
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return from16(data[2:], binary.BigEndian), UTF16
	case bytes.HasPrefix(data, []byte{0xef, 0xbb, 0xbf}):
		return string(data[3:]), UTF8
	}
	return string(data), None
}

// from16 decodes UTF-16; an odd last byte is left out.
func from16(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}

// Encode16 writes a text as Windows PowerShell's > does: UTF-16, little endian, with its mark.
func Encode16(text string) []byte {
	data := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		data = binary.LittleEndian.AppendUint16(data, u)
	}
	return data
}
