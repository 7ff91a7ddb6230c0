package dump

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Command is a line that somebody typed, as a transcript shows it.
type Command struct {
	Text string
	// From is "pod" for what was typed in a container, else "node".
	From  string
	Place Place
}

// Section is what one command printed, or a whole file.
type Section struct {
	Command *Command
	Lines
}

// prompts of PowerShell and cmd.exe: "PS C:\k> ipconfig", "C:\>ping 1.1.1.1".
var promptForm = lazyregexp.New(`^\s*(?:\[[^\]]{1,80}\]: )?(?:PS )?[A-Za-z]:\\[^<>|"]{0,200}>\s?(.*)$`)

// headingForm is what scripts that gather logs write above the output of a command:
// "Command: ipconfig /all" (microsoft/wcnscripts scripts/collectlogs).
var headingForm = lazyregexp.New(
	`^Command: ((?:[A-Z][a-z]+-[A-Za-z]+|netsh|ipconfig|route|arp|tasklist|(?i:hnsdiag|vfpctrl)(?:\.exe)?)\b.*?)(?: \(FAILED\))?\s*$`)

// enters are commands after which one types inside of a container.
var entersForm = lazyregexp.New(`(?i)\b(kubectl|docker|crictl|ctr|nerdctl)(\.exe)?\b.*\bexec\b`)
var shellForm = lazyregexp.New(`(?i)\b(powershell|pwsh|cmd)(\.exe)?\s*$`)

// Sections cuts a transcript at its prompts. A file without prompts is one
// section.
func Sections(l Lines) []Section {
	var out []Section
	begin := 0
	var current *Command
	pod := false
	end := func(to int) {
		if to > begin || current != nil {
			out = append(out, Section{current, l.Sub(begin, to)})
		}
	}
	for i, text := range l.Text {
		if !HasAny(text, `:\`, "Command: ") {
			continue
		}
		m := headingForm.FindStringSubmatch(text)
		if m == nil {
			m = promptForm.FindStringSubmatch(text)
		}
		if m == nil {
			continue
		}
		end(i)
		typed := strings.TrimSpace(m[1])
		current, begin = nil, i+1
		if typed == "" {
			continue
		}
		c := &Command{Text: typed, From: "node", Place: l.Place(i)}
		if pod || entersForm.MatchString(typed) {
			c.From = "pod"
		}
		switch {
		case strings.EqualFold(typed, "exit"):
			pod = false
		case entersForm.MatchString(typed) && shellForm.MatchString(typed):
			pod = true
		}
		current = c
	}
	end(len(l.Text))
	return out
}

// Part is a piece of a section that is either JSON or text.
type Part struct {
	JSON bool
	// Cut is the number of the line at which a JSON value begins that does not end in the
	// section: it was cut when it was taken. 0 for none. The part is text.
	Cut int
	Lines
}

// Parts separates JSON values that begin on a line of their own from the text
// around them: scripts that gather logs write a table and then JSON into one
// file (microsoft/SDN Kubernetes/windows/debug/collectlogs.ps1).
func Parts(l Lines) []Part {
	var out []Part
	begin := 0
	cut := 0
	flush := func(to int) {
		if to > begin {
			out = append(out, Part{Cut: cut, Lines: l.Sub(begin, to)})
		}
	}
	// Texts that only look like JSON cost what is read of them in vain.
	budget := 10 * (len(l.Text) + 100)
	for i := 0; i < len(l.Text) && budget > 0; i++ {
		head := strings.TrimLeft(l.Text[i], " \t")
		if head == "" || head[0] != '{' && head[0] != '[' {
			continue
		}
		n, read, unfinished := jsonLines(l.Text[i:])
		budget -= read
		if unfinished {
			cut = l.First + i
			break
		}
		if n == 0 {
			continue
		}
		flush(i)
		out = append(out, Part{JSON: true, Lines: l.Sub(i, i+n)})
		i += n - 1
		begin = i + 1
	}
	flush(len(l.Text))
	return out
}

// jsonLines counts the lines that one JSON value, an object or a list of some,
// takes from the beginning of text; 0 if text does not begin with one. read is the number
// of lines that it looked at.
func jsonLines(text []string) (n, read int, unfinished bool) {
	// A look at what follows the bracket spares most attempts: "[12:30:01] ..."
	// is a line of a log.
	head := strings.TrimLeft(text[0], " \t")
	rest := strings.TrimSpace(head[1:])
	for i := 1; rest == "" && i < len(text) && i < 4; i++ {
		rest = strings.TrimSpace(text[i])
	}
	after := "\"}"
	if head[0] == '[' {
		after = "{]"
	}
	if rest == "" || !strings.Contains(after, rest[:1]) {
		return 0, 1, false
	}
	r := &lineReader{text: text}
	dec := json.NewDecoder(r)
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return 0, r.at, errors.Is(err, io.ErrUnexpectedEOF)
	}
	end := int(dec.InputOffset())
	for n < len(text) && end > len(text[n]) {
		end -= len(text[n]) + 1
		n++
	}
	if n < len(text) && end > 0 {
		if !Blank(text[n][end:]) { // a part of something else
			return 0, r.at, false
		}
		n++
	}
	return n, r.at, false
}

// lineReader reads lines as one text without joining them before.
type lineReader struct {
	text []string
	at   int
	rest string
}

func (r *lineReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.at >= len(r.text) {
			return 0, io.EOF
		}
		r.rest = r.text[r.at] + "\n"
		r.at++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
