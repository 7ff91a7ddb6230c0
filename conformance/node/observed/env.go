package observed

import (
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"strings"

	"gopkg.in/yaml.v3"
)

var setForm = lazyregexp.New(`^([A-Za-z_][\w().\-]*)=(.*)$`)

// setList reads what set prints in cmd.exe. A list of variables has several
// that every Windows has; other files have lines of the same form.
func (r *reader) setList(l dump.Lines) {
	var found []Variable
	known := 0
	for i, text := range l.Text {
		m := setForm.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		switch strings.ToUpper(m[1]) {
		case "COMPUTERNAME", "SYSTEMROOT", "WINDIR", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "COMSPEC", "NUMBER_OF_PROCESSORS":
			known++
		}
		found = append(found, Variable{m[1], m[2], l.Place(i)})
	}
	if known >= 3 {
		for _, v := range found {
			r.variable(v)
		}
	}
}

func (r *reader) variable(v Variable) {
	if strings.EqualFold(v.name, "COMPUTERNAME") && r.node.HostName.Value == "" {
		r.node.HostName = Text{Value: v.value, Place: v.Place}
	}
	r.node.list(ListVariables, v.Place)
	r.node.Variables = append(r.node.Variables, v)
	r.addKind(ListVariables)
}

// envTable takes the rows of Get-ChildItem env:, which have a name and a value
// only.
func (r *reader) envTable(rows []*yaml.Node) bool {
	known := 0
	for _, o := range rows {
		if len(o.Content) == 4 && dump.Has(o, "Name", "Value") {
			switch strings.ToUpper(dump.Str(o, "Name")) {
			case "COMPUTERNAME", "SYSTEMROOT", "WINDIR", "OS", "PATHEXT", "PROGRAMDATA", "COMSPEC":
				known++
			}
		}
	}
	if known < 3 {
		return false
	}
	for _, o := range rows {
		if dump.Has(o, "Name", "Value") && len(o.Content) == 4 {
			r.variable(Variable{dump.Str(o, "Name"), dump.Str(o, "Value"), r.placeOf(o.Line)})
		}
	}
	return true
}

var (
	winhttpForm = lazyregexp.New(`^\s+Proxy Server\(s\)\s*:\s*(\S+)`)
	buildForm   = lazyregexp.New(`(?i)(?:OS Version:|Version|OsBuildNumber|BuildLabEx|WindowsBuildLabEx)\D{0,40}?(10\.0\.\d{5}(?:\.\d+)?)`)
	sandboxForm = lazyregexp.New(`^\s*sandbox(?:_image)?\s*=\s*["']([^"']+)["']`)
)

// small reads the facts that are one line each: netsh winhttp show proxy,
// systeminfo and ver, containerd's sandbox image.
func (r *reader) small(l dump.Lines) {
	for i, text := range l.Text {
		if m := winhttpForm.FindStringSubmatch(text); m != nil {
			r.node.WinHTTP = Text{Value: m[1], Place: l.Place(i)}
			r.addKind("WinHTTP proxy")
		}
		if strings.Contains(text, "Direct access (no proxy server)") {
			r.node.WinHTTP = Text{Value: "direct", Place: l.Place(i)}
			r.addKind("WinHTTP proxy")
		}
		if r.node.Build.Value == "" && strings.Contains(text, "10.0.") {
			if m := buildForm.FindStringSubmatch(text); m != nil && dump.HasAny(text, "OS Version:", "Microsoft Windows [Version",
				"Microsoft Windows NT") {
				r.node.Build = Text{Value: m[1], Place: l.Place(i)}
				r.addKind("the build of Windows")
			}
		}
		if m := sandboxForm.FindStringSubmatch(text); m != nil {
			r.node.Pause = append(r.node.Pause, Text{Value: m[1], Place: l.Place(i)})
			r.addKind("containerd's configuration")
		}
	}
}

// hostObject takes what systeminfo, Get-ComputerInfo and
// Win32_OperatingSystem say.
func (r *reader) hostObject(o *yaml.Node) bool {
	v := ""
	switch {
	case dump.Has(o, "WindowsProductName", "OsVersion"):
		v = dump.Str(o, "OsVersion")
	case dump.Has(o, "BuildNumber", "SystemDirectory", "Version"):
		v = dump.Str(o, "Version")
	default:
		return false
	}
	if r.node.Build.Value == "" {
		r.node.Build = Text{Value: v, Place: r.placeOf(o.Line)}
	}
	r.addKind("the build of Windows")
	return true
}
