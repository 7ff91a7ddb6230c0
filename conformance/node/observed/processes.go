package observed

import (
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"strings"

	"gopkg.in/yaml.v3"
)

func processName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	return strings.TrimSuffix(s, ".exe")
}

func (r *reader) addProcess(name string, line int) {
	p := Process{Name: processName(name), place: r.placeOf(line)}
	r.node.list(ListProcesses, p.place)
	r.node.Processes = append(r.node.Processes, p)
	r.addKind(ListProcesses)
}

func (r *reader) addService(name, state string, line int) {
	s := Service{Name: name, State: strings.ToLower(state), Place: r.placeOf(line)}
	r.node.list(ListServices, s.Place)
	r.node.Services = append(r.node.Services, s)
	r.addKind(ListServices)
}

// serviceStates are the numbers of ServiceControllerStatus, which
// ConvertTo-Json writes.
var serviceStates = map[string]string{"1": "stopped", "2": "startpending", "3": "stoppending", "4": "running", "5": "continuepending",
	"6": "pausepending", "7": "paused"}

// running takes processes and services: tasklist, Get-Process, Get-Service,
// Win32_Process and Win32_Service.
func (r *reader) running(o *yaml.Node) bool {
	switch {
	case dump.Has(o, "Image Name", "PID"):
		r.addProcess(dump.Str(o, "Image Name"), o.Line)
	case dump.Has(o, "ProcessName") && (dump.Has(o, "Id") || dump.Has(o, "Handles") || dump.Has(o, "CommandLine")):
		r.addProcess(dump.Str(o, "ProcessName"), o.Line)
	case dump.Has(o, "Name", "ProcessId") && !dump.Has(o, "StartMode") && !dump.Has(o, "PathName"):
		r.addProcess(dump.Str(o, "Name"), o.Line)
	case dump.Has(o, "Status", "Name", "DisplayName") && !dump.Has(o, "InterfaceDescription"), dump.Has(o, "Name", "State") &&
		(dump.Has(o, "StartMode") || dump.Has(o, "PathName")), dump.Has(o, "Name", "Status", "StartType"), dump.Has(o, "ServiceName", "Status"):
		state := dump.Str(o, "State")
		if state == "" {
			state = dump.Str(o, "Status")
		}
		if s, ok := serviceStates[state]; ok {
			state = s
		}
		r.addService(dump.Str(o, "Name", "ServiceName"), state, o.Line)
	default:
		return false
	}
	for _, key := range []string{"CommandLine", "PathName"} {
		if c := dump.Child(o, key); c != nil && strings.TrimSpace(c.Value) != "" {
			r.commandLine(c.Value, c.Line)
		}
	}
	return true
}

var (
	scName  = lazyregexp.New(`^SERVICE_NAME:\s*(\S.*?)\s*$`)
	scState = lazyregexp.New(`^\s+STATE\s+:\s*(\d)\s+(\w+)`)
	scPath  = lazyregexp.New(`^\s+BINARY_PATH_NAME\s+:\s*(\S.*?)\s*$`)
)

// scQuery reads sc query and sc qc.
func (r *reader) scQuery(l dump.Lines) {
	name, at := "", 0
	for i, text := range l.Text {
		if m := scName.FindStringSubmatch(text); m != nil {
			name, at = m[1], l.First+i
		}
		if m := scState.FindStringSubmatch(text); m != nil && name != "" {
			r.addService(name, serviceStates[m[1]], at)
			name = ""
		}
		if m := scPath.FindStringSubmatch(text); m != nil {
			r.commandLine(m[1], l.First+i)
		}
	}
}
