package wine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/winlab-dev/winlab/internal/cache"
)

// messages are Windows' own texts of system errors, where Wine says it in other words:
// programs print them (FormatMessage), and people and tests read them. Microsoft's
// documentation lists them, "System Error Codes" and "Windows Sockets Error Codes". What is
// not here keeps Wine's words.
var messages = map[uint32]string{
	1:     "Incorrect function.",
	2:     "The system cannot find the file specified.",
	3:     "The system cannot find the path specified.",
	4:     "The system cannot open the file.",
	5:     "Access is denied.",
	6:     "The handle is invalid.",
	15:    "The system cannot find the drive specified.",
	17:    "The system cannot move the file to a different disk drive.",
	18:    "There are no more files.",
	19:    "The media is write protected.",
	21:    "The device is not ready.",
	32:    "The process cannot access the file because it is being used by another process.",
	50:    "The request is not supported.",
	53:    "The network path was not found.",
	67:    "The network name cannot be found.",
	80:    "The file exists.",
	87:    "The parameter is incorrect.",
	109:   "The pipe has been ended.",
	112:   "There is not enough space on the disk.",
	122:   "The data area passed to a system call is too small.",
	123:   "The filename, directory name, or volume label syntax is incorrect.",
	126:   "The specified module could not be found.",
	127:   "The specified procedure could not be found.",
	145:   "The directory is not empty.",
	183:   "Cannot create a file when that file already exists.",
	267:   "The directory name is invalid.",
	1060:  "The specified service does not exist as an installed service.",
	1326:  "The user name or password is incorrect.",
	1455:  "The paging file is too small for this operation to complete.",
	10048: "Only one usage of each socket address (protocol/network address/port) is normally permitted.",
	10051: "A socket operation was attempted to an unreachable network.",
	10054: "An existing connection was forcibly closed by the remote host.",
	10060: "A connection attempt failed because the connected party did not properly respond after a period of time, or established connection failed because connected host has failed to respond.",
	10061: "No connection could be made because the target machine actively refused it.",
	10065: "A socket operation was attempted to an unreachable host.",
	11001: "No such host is known.",
}

// messageDLL is the DLL whose table of messages FormatMessage reads for the system's.
const messageDLL = "kernelbase.dll"

// withMessages is Wine's DLL of messages with those of Windows in it, from the cache.
func (w *Wine) withMessages(ctx context.Context) (string, error) {
	var from string
	for _, root := range w.dataDirs() {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == messageDLL && filepath.Base(filepath.Dir(path)) == "x86_64-windows" {
				from = path
				return fs.SkipAll
			}
			return nil
		})
	}
	if from == "" {
		return "", fmt.Errorf("Wine has no %s", messageDLL)
	}
	info, err := os.Stat(from)
	if err != nil {
		return "", err
	}
	k := &cache.Key{}
	k.Add("format", "1")
	k.Add(from, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	for _, id := range slices.Sorted(maps.Keys(messages)) {
		k.Add(strconv.Itoa(int(id)), messages[id])
	}
	dir, _, err := cache.Entry(ctx, "wine", "messages-"+k.String(), func(tmp string) error {
		dll, err := os.ReadFile(from)
		if err == nil {
			dll, err = setMessages(dll, messages)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		return os.WriteFile(filepath.Join(tmp, messageDLL), dll, 0o755)
	})
	return filepath.Join(dir, messageDLL), err
}

// english is the language of the messages: US English, the default of Wine.
const english = 0x409

// errNoTable says that a file is not a DLL with a table of messages.
var errNoTable = errors.New("it is not a 64-bit DLL with an English message table")

// setMessages gives a DLL other messages: a new section has its whole table of messages in
// English. The signature of Wine's own DLLs goes, since Wine would load the original
// instead. The formats are those of Microsoft's "PE Format" and MESSAGE_RESOURCE_DATA of
// winnt.h.
func setMessages(dll []byte, texts map[uint32]string) (_ []byte, err error) {
	defer func() {
		if recover() != nil { // it ends too early
			err = errNoTable
		}
	}()
	dll = bytes.Clone(dll)
	le := binary.LittleEndian
	head := int(le.Uint32(dll[0x3c:]))
	if string(dll[:2]) != "MZ" || string(dll[head:head+4]) != "PE\x00\x00" || le.Uint16(dll[head+24:]) != 0x20b {
		return nil, errNoTable
	}
	optional := dll[head+24:]
	sections := dll[head+24+int(le.Uint16(dll[head+20:])):]
	n := int(le.Uint16(dll[head+6:]))
	at := func(rva uint32) int { // in the file
		for i := range n {
			s := sections[i*40:]
			if start := le.Uint32(s[12:]); rva >= start && rva-start < le.Uint32(s[16:]) {
				return int(rva - start + le.Uint32(s[20:]))
			}
		}
		return len(dll)
	}
	resources := le.Uint32(optional[112+2*8:])
	entry := at(resources)
	for _, id := range []uint32{11 /* RT_MESSAGETABLE */, 0 /* whichever */, english} {
		dir := dll[entry:]
		found := false
		for i := range int(le.Uint16(dir[12:])) + int(le.Uint16(dir[14:])) {
			e := dir[16+i*8:]
			if id == 0 || le.Uint32(e) == id {
				entry, found = at(resources+le.Uint32(e[4:])&^(1<<31)), true
				break
			}
		}
		if !found {
			return nil, errNoTable
		}
	}
	table := dll[at(le.Uint32(dll[entry:])):][:le.Uint32(dll[entry+4:])]
	made := messageTable(table, texts)

	size, file := le.Uint32(optional[32:]), le.Uint32(optional[36:]) // alignments
	last := sections[(n-1)*40:]
	up := func(v, to uint32) uint32 { return (v + to - 1) / to * to }
	rva := up(le.Uint32(last[12:])+max(le.Uint32(last[8:]), le.Uint32(last[16:])), size)
	offset := up(uint32(len(dll)), max(file, size)) // whole pages can be mapped
	added := sections[n*40:][:40]
	if head+24+int(le.Uint16(dll[head+20:]))+(n+1)*40 > int(le.Uint32(optional[60:])) {
		return nil, errors.New("its header has no room for another section")
	}
	copy(added, make([]byte, 40))
	copy(added, ".winlab")
	le.PutUint32(added[8:], uint32(len(made)))
	le.PutUint32(added[12:], rva)
	le.PutUint32(added[16:], up(uint32(len(made)), file))
	le.PutUint32(added[20:], offset)
	le.PutUint32(added[36:], 0x40000040) // data that is read
	le.PutUint16(dll[head+6:], uint16(n+1))
	le.PutUint32(optional[56:], up(rva+uint32(len(made)), size))
	le.PutUint32(dll[entry:], rva)
	le.PutUint32(dll[entry+4:], uint32(len(made)))
	copy(dll[0x40:0x60], make([]byte, 32)) // "Wine builtin DLL"
	out := make([]byte, offset+up(uint32(len(made)), file))
	copy(out, dll)
	copy(out[offset:], made)
	return out, nil
}

// messageTable is a table with other texts for messages that it has.
func messageTable(table []byte, texts map[uint32]string) []byte {
	le := binary.LittleEndian
	n := le.Uint32(table)
	made := append([]byte{}, table[:4+12*n]...)
	for b := range n {
		block := table[4+12*b:]
		low, high, from := le.Uint32(block), le.Uint32(block[4:]), le.Uint32(block[8:])
		le.PutUint32(made[4+12*b+8:], uint32(len(made)))
		for id := low; ; id++ {
			length := uint32(le.Uint16(table[from:]))
			entry := table[from : from+length]
			if text, ok := texts[id]; ok {
				entry = messageEntry(text)
			}
			made = append(made, entry...)
			if from += length; id == high {
				break
			}
		}
	}
	return made
}

// messageEntry is one message in UTF-16.
func messageEntry(text string) []byte {
	e := []byte{0, 0, 1, 0}
	for _, u := range utf16.Encode([]rune(text + "\r\n\x00")) {
		e = binary.LittleEndian.AppendUint16(e, u)
	}
	for len(e)%4 != 0 {
		e = append(e, 0)
	}
	binary.LittleEndian.PutUint16(e, uint16(len(e)))
	return e
}
