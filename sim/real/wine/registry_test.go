package wine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someHive = `WINE REGISTRY Version 2
;; All keys relative to \\Machine

[Software\\Microsoft\\Windows NT\\CurrentVersion] 1795244863
#time=1dd7987012da48e
"CurrentBuild"="7601"
"DigitalProductId"=hex:00,00,\
  00,01
"InstallDate"=dword:4be5019a

[Software\\Microsoft\\Windows NT\\CurrentVersion\\AeDebug] 1795244863
"CurrentBuild"="of another key"
`

func TestRegistry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "system.reg")
	if err := os.WriteFile(file, []byte(someHive), 0o644); err != nil {
		t.Fatal(err)
	}
	const current = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	err := setRegistry(filepath.Dir(file), []value{
		{current, "CURRENTBUILD", "17763"},          // what is there, in any case of letters
		{current, "DigitalProductId", uint32(0x1f)}, // over several lines, of another type
		{current, "UBR", uint32(1432)},
		{`HKLM\System\New`, `with "quotes" and \`, `C:\x "y"`},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `WINE REGISTRY Version 2
;; All keys relative to \\Machine

[Software\\Microsoft\\Windows NT\\CurrentVersion] 1795244863
"UBR"=dword:00000598
#time=1dd7987012da48e
"CURRENTBUILD"="17763"
"DigitalProductId"=dword:0000001f
"InstallDate"=dword:4be5019a

[Software\\Microsoft\\Windows NT\\CurrentVersion\\AeDebug] 1795244863
"CurrentBuild"="of another key"

[System\\New] 0
"with \"quotes\" and \\"="C:\\x \"y\""
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Where the current control set is a link, its keys are those of set 1.
func TestRegistryControlSet(t *testing.T) {
	for control, want := range map[string]string{"ControlSet001": "ControlSet001", "CurrentControlSet": "CurrentControlSet"} {
		h := &hive{lines: []string{"WINE REGISTRY Version 2", `[System\\` + control + `\\Control\\Windows] 1`}}
		h.lines = append(h.lines, `[System\\`+control+`\\Control] 1`)
		if err := h.set([]value{{`HKLM\SYSTEM\CurrentControlSet\Control\X`, "A", "b"}}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(h.lines, "\n"); !strings.Contains(strings.ToLower(text), strings.ToLower(`[System\\`+want+`\\Control\\X]`)) {
			t.Errorf("the hive of %s is\n%s", control, text)
		}
	}
}

func TestRegistryMistakes(t *testing.T) {
	h := &hive{lines: []string{"WINE REGISTRY Version 2"}}
	err := h.set([]value{{`HKCU\X`, "a", "b"}, {`HKLM\X`, "a", 7}, {`HKLM\X`, "a", "line\nbreak"}, {`HKLM`, "a", "b"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`write HKLM\...`, "write a string or a uint32", "printable ASCII"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want also %q", err, want)
		}
	}
	if len(strings.Split(err.Error(), "\n")) != 4 {
		t.Errorf("not all mistakes at once: %v", err)
	}
	file := filepath.Join(t.TempDir(), "system.reg")
	if err := os.WriteFile(file, []byte("REGEDIT4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := setRegistry(filepath.Dir(file), nil); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another format: %v", err)
	}
}

func TestPath(t *testing.T) {
	for in, want := range map[string]string{"/usr/lib/x y": `Z:\usr\lib\x y`, `C:\k`: `C:\k`, "d:/k": "d:/k", "/": `Z:\`} {
		if got := Path(in); got != want {
			t.Errorf("Path(%q) is %q, want %q", in, got, want)
		}
	}
	if got := Path("registry_test.go"); !strings.HasPrefix(got, `Z:\`) || !strings.HasSuffix(got, `\sim\real\wine\registry_test.go`) {
		t.Errorf("a relative path became %q", got)
	}
}

// Whatever is set into whatever file: no panic, and what was set is found again and
// is there once.
func FuzzRegistry(f *testing.F) {
	f.Add(someHive, `HKLM\Software\Microsoft\Windows NT\CurrentVersion`, "CurrentBuild", "1")
	f.Add("WINE REGISTRY Version 2\n[A]\n\"x\"=hex:\\\n", `HKLM\A`, "x", `\`)
	f.Fuzz(func(t *testing.T, text, key, name, data string) {
		h := &hive{lines: strings.Split(text, "\n")}
		if h.set([]value{{key, name, "before"}}) != nil {
			return
		}
		lines := len(h.lines)
		if err := h.set([]value{{key, name, data}}); err != nil {
			return
		}
		if len(h.lines) != lines {
			t.Errorf("setting a value again has changed the number of lines from %d to %d", lines, len(h.lines))
		}
	})
}
