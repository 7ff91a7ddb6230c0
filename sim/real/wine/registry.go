package wine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// value is one value of the registry.
type value struct {
	// Key is below HKEY_LOCAL_MACHINE, `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`.
	Key string
	// Name is the value's name. Data is a string (REG_SZ) or a uint32 (REG_DWORD).
	Name string
	Data any
}

// hive is a file of Wine's registry, as the Wine server reads and writes it while
// no program runs (server/registry.c of Wine, "WINE REGISTRY Version 2"): lines
// `[Key\\Sub] time`, then `"Name"="text"` or `"Name"=dword:0000001f`; a value of
// other types may go on over lines that end in a backslash. Writing the file takes
// a millisecond; starting regedit in a fresh prefix takes a second.
type hive struct{ lines []string }

func readHive(file string) (*hive, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	h := &hive{lines: strings.Split(strings.TrimRight(string(text), "\n"), "\n")}
	if !strings.HasPrefix(h.lines[0], "WINE REGISTRY Version 2") {
		return nil, fmt.Errorf("%s begins with %q; winlab knows version 2 of Wine's registry files only", file, h.lines[0])
	}
	return h, nil
}

func (h *hive) write(file string) error {
	tmp := file + ".new"
	if err := os.WriteFile(tmp, []byte(strings.Join(h.lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

// set gives values their data. All mistakes are reported at once.
func (h *hive) set(values []value) error {
	var errs []error
	for _, v := range values {
		if err := h.setOne(v); err != nil {
			errs = append(errs, fmt.Errorf("registry value %q of %q: %w", v.Name, v.Key, err))
		}
	}
	return errors.Join(errs...)
}

func (h *hive) setOne(v value) error {
	root, key, ok := strings.Cut(v.Key, `\`)
	if !ok || key == "" || !strings.EqualFold(root, "HKLM") && !strings.EqualFold(root, "HKEY_LOCAL_MACHINE") {
		return errors.New(`only keys of the machine can be set; write HKLM\...`)
	}
	// Wine 8 has the current control set as a key; where it is a link to set 1,
	// as in Windows, the file has the keys of that.
	if rest, ok := cutPrefixFold(key, `SYSTEM\CurrentControlSet\`); ok && h.has(`System\\ControlSet001\\Control`) {
		key = `System\ControlSet001\` + rest
	}
	key, err1 := quote(key, `[]`)
	name, err2 := quote(v.Name, `"`)
	var data string
	var err3 error
	switch d := v.Data.(type) {
	case string:
		data, err3 = quote(d, `"`)
		data = `"` + data + `"`
	case uint32:
		data = fmt.Sprintf("dword:%08x", d)
	default:
		err3 = fmt.Errorf("data of type %T; write a string or a uint32", v.Data)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	first, last := h.section(key)
	head := `"` + name + `"=`
	for i := first; i < last; {
		end := i + 1
		for end < last && strings.HasSuffix(h.lines[end-1], `\`) {
			end++
		}
		if _, ok := cutPrefixFold(h.lines[i], head); ok {
			h.lines = slices.Replace(h.lines, i, end, head+data)
			return nil
		}
		i = end
	}
	h.lines = slices.Insert(h.lines, first, head+data)
	return nil
}

// section returns the lines of a key, from the one after its head; it is made when
// it is not there.
func (h *hive) section(key string) (first, last int) {
	head := "[" + key + "]"
	for i, l := range h.lines {
		if _, ok := cutPrefixFold(l, head); !ok {
			continue
		}
		first, last = i+1, i+1
		for last < len(h.lines) && !strings.HasPrefix(h.lines[last], "[") && h.lines[last] != "" {
			last++
		}
		return first, last
	}
	h.lines = append(h.lines, "", head+" 0")
	return len(h.lines), len(h.lines)
}

// remove takes a key's values out of the file.
func (h *hive) remove(key string) {
	if !h.has(key) {
		return
	}
	first, last := h.section(key)
	h.lines = slices.Delete(h.lines, first-1, last)
}

// has reports whether the file has a key, as it is written there.
func (h *hive) has(key string) bool {
	return slices.ContainsFunc(h.lines, func(l string) bool {
		_, ok := cutPrefixFold(l, "["+key+"]")
		return ok
	})
}

// quote writes a text as the file has it. What would need more than a backslash is
// refused: nothing here needs it.
func quote(s, special string) (string, error) {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < ' ' || r > '~':
			return "", fmt.Errorf("the character %q; only printable ASCII can be set", r)
		case r == '\\' || strings.ContainsRune(special, r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String(), nil
}

func cutPrefixFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// setRegistry sets values of the machine in a prefix in which nothing runs.
func setRegistry(prefix string, values []value) error {
	file := filepath.Join(prefix, "system.reg")
	h, err := readHive(file)
	if err != nil {
		return err
	}
	if err := h.set(values); err != nil {
		return err
	}
	return h.write(file)
}
