package observed

import (
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"net/url"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	pingForm    = lazyregexp.New(`^Pinging (\S+?)(?: \[([^\]]+)\])?(?: from \S+)? with \d+ bytes of data`)
	pingLoss    = lazyregexp.New(`Packets: Sent = (\d+), Received = (\d+), Lost = (\d+)`)
	pingNoHost  = lazyregexp.New(`^Ping request could not find host (\S+?)\.? `)
	curlRefused = lazyregexp.New(`^curl(?:\.exe)?: \(\d+\) (?:Failed to connect to|Could not connect to server|connect to) ?(\S+)? port (\d+)`)
	curlFailed  = lazyregexp.New(`^curl(?:\.exe)?: \((?:[235678]|28|35|52|56)\)`) // curl's codes for what it did not reach
	curlNoHost  = lazyregexp.New(`^curl(?:\.exe)?: \(6\) Could not resolve host: (\S+)`)
	urlForm     = lazyregexp.New(`(?i)\bhttps?://[^\s'"<>]+`)
	hostPort    = lazyregexp.New(`(?:^|\s)((?:\d{1,3}\.){3}\d{1,3})(?::(\d+))?(?:/\S*)?(?:\s|$)`)
	tncWarning  = lazyregexp.New(`^WARNING: TCP connect to \(?(\S+?)\s*:\s*(\d+)\)? failed`)
	webFailed   = lazyregexp.New(
		`^(?:Invoke-WebRequest|iwr|wget|curl|Invoke-RestMethod) : (?:Unable to connect|The operation has timed out|The remote name could not be resolved)`)
	nsMissing  = lazyregexp.New(`^\*\*\* \S+ can't find (\S+?): (.*)$`)
	nsTimeout  = lazyregexp.New(`^\*\*\* Request to \S+ timed-out`)
	dnsMissing = lazyregexp.New(
		`^(?:Resolve-DnsName : )?(\S+) : (?:DNS name does not exist|DNS server failure|This operation returned because the timeout period expired)`)
)

// trials reads what ping, curl, Invoke-WebRequest, nslookup and Resolve-DnsName
// print. Test-NetConnection prints a list, see [reader.testNetConnection].
func (r *reader) trials(c *Command, l dump.Lines) {
	begin := len(r.node.Trials)
	var ping *Trial
	for i, text := range l.Text {
		text = strings.TrimSpace(text)
		if m := pingForm.FindStringSubmatch(text); m != nil {
			ping = &Trial{Tool: "ping", Host: m[1], Address: dump.Addr(m[2])}
			continue
		}
		if m := pingLoss.FindStringSubmatch(text); m != nil && ping != nil {
			ping.OK = m[2] != "0" && (i == 0 || !allUnreachable(l.Text[:i]))
			r.trial(c, *ping, l.Place(i))
			ping = nil
			continue
		}
		if t := failure(c, text); t.Host != "" {
			r.trial(c, t, l.Place(i))
		}
	}
	if c == nil || len(r.node.Trials) > begin {
		return
	}
	// A command whose output shows an answer and no error succeeded.
	if regexpCurl.MatchString(c.Text) && answered(l) {
		if host, port := target(c); host != "" {
			r.trial(c, Trial{Tool: "curl", Host: host, Port: port, OK: true}, l.Place(-1))
			r.node.Trials[len(r.node.Trials)-1].Place = c.Place
		}
	}
}

func (r *reader) trial(c *Command, t Trial, at Place) {
	if t.From == "" {
		t.From = r.originOf(c)
	}
	if !t.Address.IsValid() {
		t.Address = dump.Addr(t.Host)
	}
	t.Place = at
	r.node.list(listTrials, at)
	r.node.Trials = append(r.node.Trials, t)
	r.addKind(listTrials)
}

// failures are the lines by which programs report that something failed. The first one
// that fits counts; try returns a trial without a host when the line does not say whom
// it tried.
var failures = []struct {
	form *lazyregexp.Regexp
	try  func(c *Command, text string, m []string) Trial
}{
	{pingNoHost, func(_ *Command, _ string, m []string) Trial { return Trial{Tool: "ping", Host: m[1]} }},
	{curlNoHost, func(_ *Command, _ string, m []string) Trial { return Trial{Tool: "curl", Host: m[1]} }},
	{curlFailed, func(c *Command, text string, _ []string) Trial { return curlTrial(c, text) }},
	{tncWarning, func(_ *Command, _ string, m []string) Trial {
		return Trial{Tool: "Test-NetConnection", Host: m[1], Port: number(m[2])}
	}},
	{webFailed, func(c *Command, _ string, _ []string) Trial {
		host, port := target(c)
		return Trial{Tool: "Invoke-WebRequest", Host: host, Port: port}
	}},
	{nsMissing, func(_ *Command, _ string, m []string) Trial { return Trial{Tool: "nslookup", Host: m[1]} }},
	{nsTimeout, func(c *Command, _ string, _ []string) Trial { return nslookupTrial(c) }},
	{dnsMissing, func(_ *Command, _ string, m []string) Trial { return Trial{Tool: "Resolve-DnsName", Host: m[1]} }},
}

// failure is the failed trial that a line reports; its host is empty when the line
// reports none.
func failure(c *Command, text string) Trial {
	for _, f := range failures {
		if m := f.form.FindStringSubmatch(text); m != nil {
			return f.try(c, text, m)
		}
	}
	return Trial{}
}

func curlTrial(c *Command, text string) Trial {
	if to := curlRefused.FindStringSubmatch(text); to != nil && to[1] != "" {
		return Trial{Tool: "curl", Host: to[1], Port: number(to[2])}
	}
	host, port := target(c)
	return Trial{Tool: "curl", Host: host, Port: port}
}

// nslookupTrial: what was asked for is the last word of the command.
func nslookupTrial(c *Command) Trial {
	if c == nil {
		return Trial{}
	}
	f := strings.Fields(c.Text)
	if len(f) < 2 {
		return Trial{}
	}
	return Trial{Tool: "nslookup", Host: f[len(f)-1]}
}

var regexpCurl = lazyregexp.New(`(?i)\b(curl(\.exe)?|iwr|Invoke-WebRequest)\b`)

func answered(l dump.Lines) bool {
	for _, t := range l.Text {
		if dump.HasAny(t, "HTTP/1.", "StatusCode        : 200", "<html", "<HTML", "<!DOCTYPE", "\"") && !strings.Contains(t, "curl: (") {
			return true
		}
	}
	return false
}

// allUnreachable is for pings of which every reply is an error of a router or
// of the node itself: they count as received.
func allUnreachable(text []string) bool {
	n, bad := 0, 0
	for i := len(text) - 1; i >= 0 && !strings.HasPrefix(strings.TrimSpace(text[i]), "Pinging "); i-- {
		if strings.HasPrefix(strings.TrimSpace(text[i]), "Reply from") {
			n++
			if strings.Contains(text[i], "unreachable") || strings.Contains(text[i], "expired") {
				bad++
			}
		}
	}
	return n > 0 && n == bad
}

// target is what a command such as curl http://10.96.0.10:80/ asks.
func target(c *Command) (host string, port int) {
	if c == nil {
		return "", 0
	}
	if m := urlForm.FindString(c.Text); m != "" {
		u, err := url.Parse(m)
		if err != nil {
			return "", 0
		}
		port = number(u.Port())
		if port < 0 {
			port = 80
			if strings.EqualFold(u.Scheme, "https") {
				port = 443
			}
		}
		return u.Hostname(), port
	}
	if m := hostPort.FindStringSubmatch(c.Text); m != nil {
		port = 80
		if m[2] != "" {
			port = number(m[2])
		}
		return m[1], port
	}
	return "", 0
}

// originOf says where a trial was made, by what was typed, else by the file's name.
func (r *reader) originOf(c *Command) string {
	if c != nil && c.From != "" {
		return c.From
	}
	name := strings.ToLower(r.file)
	switch {
	case strings.Contains(name, "pod") || strings.Contains(name, "container"):
		return "pod"
	case strings.Contains(name, "node") || strings.Contains(name, "host"):
		return "node"
	}
	return ""
}

// testNetConnection takes the list that Test-NetConnection prints.
func (r *reader) testNetConnection(c *Command, o *yaml.Node) bool {
	if !dump.Has(o, "ComputerName") || dump.Child(o, "TcpTestSucceeded", "PingSucceeded") == nil {
		return false
	}
	t := Trial{Tool: "Test-NetConnection", Host: dump.Str(o, "ComputerName"), Address: dump.Addr(dump.Str(o, "RemoteAddress")),
		Source: dump.Addr(firstWord(dump.Str(o, "SourceAddress")))}
	if s := dump.Child(o, "SourceAddress"); s != nil && s.Kind == yaml.MappingNode {
		t.Source = dump.Addr(dump.Str(s, "IPAddress"))
	}
	key := "PingSucceeded"
	if dump.Has(o, "TcpTestSucceeded") {
		key = "TcpTestSucceeded"
		t.Port = max(number(dump.Str(o, "RemotePort")), 0)
	} else {
		t.Tool = "ping"
	}
	t.OK = dump.Truth(dump.Str(o, key))
	t.From = r.originOf(c)
	t.Place = r.placeOf(line(dump.Child(o, key), o.Line))
	// The warning above the list is about the same trial.
	if k := len(r.node.Trials) - 1; k >= 0 && r.node.Trials[k].Tool == "Test-NetConnection" && r.node.Trials[k].Place.File == t.Place.File &&
		r.node.Trials[k].Port == t.Port && r.node.Trials[k].Host == t.Host && !r.node.Trials[k].Source.IsValid() {
		r.node.Trials = r.node.Trials[:k]
	}
	r.node.list(listTrials, t.Place)
	r.node.Trials = append(r.node.Trials, t)
	r.addKind(listTrials)
	return true
}

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}
