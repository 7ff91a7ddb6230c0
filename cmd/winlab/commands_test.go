package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims/verify"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// ofEachKind is how many commands of each kind are tried.
const ofEachKind = 2

// kindOf is what decides how a command is written: the verb and its flags, and whether the
// setting is one of several.
func kindOf(c *result.Check) string {
	kind := ""
	for i, w := range strings.Fields(c.Command) {
		if i == 1 || strings.HasPrefix(w, "--") {
			kind += w + " "
		}
	}
	switch {
	case strings.HasSuffix(c.What, "on the wire"), strings.HasSuffix(c.What, "stays on the node"):
		kind += "wire"
	case strings.Contains(c.What, "name/"):
		kind += "by name"
	}
	return kind
}

// TestCommandsRepeatTheirChecks runs the commands that a run prints beside its checks, some
// of each kind, and wants what the check has: the same flow with the same paths, the same
// answers, the same objects.
func TestCommandsRepeatTheirChecks(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it: it builds four labs and runs a hundred commands")
	}
	doc, err := verify.Run(t.Context(), verify.Options{Nodes: fixtures + "/nodes", Paths: []string{
		fixtures + "/labs/l2bridge-azure-cni-dual-stack.yaml", fixtures + "/labs/l2bridge-flannel-host-gw.yaml", fixtures +
			"/labs/overlay-flannel-vxlan.yaml",
		fixtures + "/labs/ovs-l3.yaml", fixtures + "/incidents"}})
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]int{}
	try := func(where string, k *result.Check) {
		if k.Command == "" {
			return
		}
		kind := kindOf(k)
		if tried[kind]++; tried[kind] > ofEachKind {
			return
		}
		t.Run(kind, func(t *testing.T) { repeat(t, where, k, doc.Traces.Get(k.Trace)) })
	}
	for i := range doc.Cells {
		for j := range doc.Cells[i].Checks {
			try(doc.Cells[i].Claim+" in "+doc.Cells[i].Setting, &doc.Cells[i].Checks[j])
		}
	}
	for i := range doc.Flows {
		try(doc.Flows[i].Lab+" "+doc.Flows[i].Variant+" "+doc.Flows[i].At(), &doc.Flows[i].Check)
	}
	for i := range doc.Statics {
		try(doc.Statics[i].Claim, &doc.Statics[i].Check)
	}
	if len(tried) < 12 {
		t.Errorf("only %d kinds of commands: %v", len(tried), tried)
	}
}

// repeat runs the command of a check and compares.
func repeat(t *testing.T, where string, k *result.Check, want *trace.Trace) {
	t.Helper()
	words := unquoted(k.Command)
	verb := strings.Join(words[1:min(3, len(words))], " ")
	switch {
	case words[1] == "trace":
		var got trace.Trace
		printed(t, append(words, "-o", "json"), &got)
		if a, b := essence(want), essence(&got); a != b {
			t.Errorf("%s: %s\n%s\ngives\n%s\nwant\n%s", where, k.What, k.Command, b, a)
		}
	case words[1] == "resolve":
		var got trace.Lookup
		printed(t, append(words, "-o", "json"), &got)
		if string(got.Verdict) != k.Got || string(got.Reason) != k.Reason {
			t.Errorf("%s: %s\n%s\ngives %s %s, want %s %s", where, k.What, k.Command, got.Verdict, got.Reason, k.Got, k.Reason)
		}
	case verb == "hns export":
		out := stdout(t, words)
		first, _, _ := strings.Cut(k.Got, ",")
		if !bytes.Contains(bytes.ToLower(out), []byte(strings.ToLower(first))) {
			t.Errorf("%s: %s\n%s\nhas no %q", where, k.What, k.Command, first)
		}
	case words[1] == "doctor":
		cause, finds := strings.CutPrefix(k.Expect, "finds ")
		if out := stdout(t, append(words, "-o", "json")); finds && cause != "nothing of it" && !bytes.Contains(out, []byte(cause)) {
			t.Errorf("%s: %s\n%s\ndoes not find %s", where, k.What, k.Command, cause)
		}
	case words[1] == "run":
		stdout(t, append(words, "-d", t.TempDir()))
	default:
		t.Errorf("%s: %s\nno test knows what %s prints", where, k.What, k.Command)
	}
}

// essence is what must be the same of two traces of a flow.
func essence(t *trace.Trace) string {
	text := string(t.Verdict) + " " + string(t.Reason) + " " + t.Flow.From + " " + t.Flow.Src + " > " + t.Flow.To + " " + t.Flow.Dst + " " +
		t.Flow.Protocol + "\n"
	for _, p := range t.Paths {
		text += string(p.Verdict) + " " + string(p.Reason) + " " + p.Summary + "\n"
		for _, s := range p.Steps {
			text += s.Place + " " + s.Object + " " + cmp.Or(s.Text(), string(s.Action)) + "\n"
		}
	}
	return dynamic.ReplaceAllString(text, ":PORT")
}

// dynamic are ports that a stack or a pool picks. Which ones are free depends on the flows
// that a cluster has had before.
var dynamic = regexp.MustCompile(`:(49[1-9]|5[0-9]{2}|6[0-9]{2})[0-9]{2}\b`)

// printed runs a command that prints JSON.
func printed(t *testing.T, words []string, into any) {
	t.Helper()
	out := stdout(t, words)
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// stdout runs a command. It may exit with 1: what is printed decides.
func stdout(t *testing.T, words []string) []byte {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	cmd.Env = os.Environ()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, errOut.Bytes())
	}
	return out
}

// unquoted splits a command into words as a shell would; quotes are of either kind.
func unquoted(command string) []string {
	var words []string
	var word strings.Builder
	in := rune(0)
	for _, r := range command {
		switch {
		case in != 0 && r == in:
			in = 0
		case in == 0 && (r == '\'' || r == '"'):
			in = r
		case in == 0 && r == ' ':
			words = append(words, word.String())
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return append(words, word.String())
}
