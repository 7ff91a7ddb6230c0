package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/real/programs/relay"
)

// psCall is a call of a command.
type psCall struct {
	p     *psScript
	name  string
	words []psWord
	input *psValue // what comes through the pipeline, nil for none
	named map[string]string
	args  []string
}

// psWord is a word after a command; isName says that it is a parameter's name.
type psWord struct {
	text   string
	isName bool
}

// errCommand is a command's failure, which does not end the script.
type errCommand struct{ text string }

func (e *errCommand) Error() string { return e.text }

func refuse(format string, args ...any) error { return &errCommand{fmt.Sprintf(format, args...)} }

// aliases of commands (about_Aliases).
var aliases = map[string]string{
	"sleep": "start-sleep", "echo": "write-output", "write": "write-output", "cat": "get-content", "type": "get-content", "gc": "get-content",
	"sc": "set-content", "ls": "get-childitem", "dir": "get-childitem", "gci": "get-childitem", "iwr": "invoke-webrequest",
	"wget": "invoke-webrequest", "curl": "invoke-webrequest", "tnc": "test-netconnection",
}

// switches are parameters without a value.
var switches = []string{"-usebasicparsing", "-force", "-nonewline", "-name"}

// cmdlets is the table of commands.
var cmdlets = map[string]func(*psCall) (psValue, error){
	"start-sleep": sleepFor, "write-host": writeHost, "write-output": writeOutput,
	"get-content": getContent, "set-content": setContent, "get-childitem": children, "test-path": testPath, "get-item": item,
	"invoke-webrequest": webRequest, "test-netconnection": testConnection,
	"resolve-dnsname": askWinlab("resolve-dnsname"), "get-netnat": askWinlab("get-netnat"),
}

// call runs a cmdlet, a script or another program.
func (p *psScript) call(c *psCall, name, file string, appends bool) (v psValue, err error) {
	c.name = strings.ToLower(name)
	if full, ok := aliases[c.name]; ok {
		c.name = full
	}
	run := func() (psValue, error) {
		if f, ok := cmdlets[c.name]; ok {
			if c.input != nil {
				return v, refuse("winlab: powershell.exe here pipes into programs, and not into %s", c.name)
			}
			c.arguments()
			return f(c)
		}
		if strings.HasSuffix(c.name, ".ps1") {
			text, err := os.ReadFile(name)
			if err != nil {
				return v, refuse("%s", unknownCommand(name))
			}
			inner := psScript{ctx: p.ctx, s: p.s, vars: p.vars}
			code := inner.exitCode(string(text))
			p.failed = code != 0
			return v, nil
		}
		all := []string{name}
		for _, w := range c.words {
			all = append(all, w.text)
		}
		v, err := p.native(all, c.input)
		if errors.Is(err, errUnknownCommand) {
			err = refuse("%s", unknownCommand(name))
		}
		return v, err
	}
	p.failed = false
	if file != "" {
		if v, err = p.capture(run); err == nil {
			return psValue{}, p.save(c, file, v.lines, appends)
		}
	} else {
		v, err = run()
	}
	return v, p.complain(c, err)
}

func unknownCommand(name string) string {
	if verb, noun, ok := strings.Cut(name, "-"); ok && verb != "" && noun != "" && !strings.ContainsAny(name, `\/.`) {
		return "winlab: powershell.exe here does not know " + name
	}
	return name + " : The term '" + name + "' is not recognized as the name of a cmdlet, function, script file, or operable program. " +
		"Check the spelling of the name, or if a path was included, verify that the path is correct and try again."
}

// complain prints what a command complains about; the script goes on, unless it wants to stop.
func (p *psScript) complain(c *psCall, err error) error {
	var e *errCommand
	if !errors.As(err, &e) {
		return err
	}
	action := c.named["-erroraction"]
	if action == "" {
		action = strings.Join(p.vars["erroractionpreference"], "") // about_Preference_Variables
	}
	if strings.EqualFold(action, "stop") {
		return &psError{e.text}
	}
	p.failed = true
	if !strings.EqualFold(action, "silentlycontinue") {
		p.s.complain(0, "%s", e.text)
	}
	return nil
}

// arguments sorts what a cmdlet is given: a parameter takes the next word, unless it is a
// switch.
func (c *psCall) arguments() {
	c.named = map[string]string{}
	for k := 0; k < len(c.words); k++ {
		w := c.words[k]
		name := strings.ToLower(w.text)
		switch {
		case !w.isName:
			c.args = append(c.args, w.text)
		case slices.Contains(switches, name) || k+1 == len(c.words) || c.words[k+1].isName:
			c.named[name] = "True"
		default:
			k++
			c.named[name] = c.words[k].text
		}
	}
}

// get is a parameter by one of its names or the beginning of one, else the next argument.
func (c *psCall) get(names ...string) (string, bool) {
	for _, name := range names {
		for given, v := range c.named {
			if len(given) > 1 && strings.HasPrefix(name, given) {
				return v, true
			}
		}
	}
	if len(c.args) == 0 {
		return "", false
	}
	v := c.args[0]
	c.args = c.args[1:]
	return v, true
}

func (c *psCall) path() (string, error) {
	v, ok := c.get("-path", "-literalpath")
	if !ok {
		return "", refuse("%s : a path is missing", c.name)
	}
	return v, nil
}

// fileError words an error of a file as PowerShell does.
func fileError(command, file string, err error) error {
	full := file
	if abs, e := filepath.Abs(file); e == nil {
		full = abs
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return refuse("%s : Cannot find path '%s' because it does not exist.", command, full)
	case errors.Is(err, os.ErrPermission):
		return refuse("%s : Access to the path '%s' is denied.", command, full)
	}
	return refuse("%s : %v", command, err)
}

func sleepFor(c *psCall) (psValue, error) {
	unit := time.Second
	if c.named["-milliseconds"] != "" {
		unit = time.Millisecond
	}
	v, ok := c.get("-seconds", "-milliseconds")
	n, err := strconv.ParseFloat(v, 64)
	if !ok || err != nil || n < 0 || n > 1e9 {
		return psValue{}, refuse("Start-Sleep : Cannot validate argument on parameter 'Seconds'.")
	}
	select {
	case <-time.After(time.Duration(n * float64(unit))):
		return psValue{}, nil
	case <-c.p.ctx.Done():
		return psValue{}, c.p.ctx.Err()
	}
}

func writeHost(c *psCall) (psValue, error) {
	end := "\n"
	if c.named["-nonewline"] != "" {
		end = ""
	}
	c.p.s.printf("%s%s", strings.Join(c.args, " "), end)
	return psValue{}, nil
}

func writeOutput(c *psCall) (psValue, error) { return psValue{lines: c.args}, nil }

func getContent(c *psCall) (psValue, error) {
	file, err := c.path()
	if err != nil {
		return psValue{}, err
	}
	text, err := os.ReadFile(file)
	return psValue{lines: linesOf(string(text))}, fileError(c.name, file, err)
}

func setContent(c *psCall) (psValue, error) {
	file, err := c.path()
	if err != nil {
		return psValue{}, err
	}
	v, _ := c.get("-value")
	return psValue{}, c.p.save(c, file, []string{v}, false)
}

func children(c *psCall) (psValue, error) {
	file, ok := c.get("-path", "-literalpath")
	if !ok {
		file = "."
	}
	info, err := os.Stat(file)
	if err != nil {
		return psValue{}, fileError(c.name, file, err)
	}
	all := []os.FileInfo{info}
	dir, _ := filepath.Abs(file)
	if !info.IsDir() {
		dir = filepath.Dir(dir)
	} else if all, err = readDir(file); err != nil {
		return psValue{}, fileError(c.name, file, err)
	}
	var v psValue
	if c.named["-name"] != "" || c.p.captured {
		for _, i := range all {
			v.lines = append(v.lines, i.Name())
		}
		return v, nil
	}
	if len(all) > 0 {
		v.lines = []string{"", "", "    Directory: " + dir, "", "",
			"Mode                 LastWriteTime         Length Name", "----                 -------------         ------ ----"}
	}
	for _, i := range all {
		mode, size := "-a----", fmt.Sprint(i.Size())
		if i.IsDir() {
			mode, size = "d-----", ""
		}
		v.lines = append(v.lines, fmt.Sprintf("%-14s%22s%15s %s", mode, i.ModTime().Format("1/2/2006   3:04 PM"), size, i.Name()))
	}
	return v, nil
}

func readDir(dir string) (all []os.FileInfo, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if i, err := e.Info(); err == nil {
			all = append(all, i)
		}
	}
	return all, err
}

// item is the object of a file or folder, with what kubelet.exe asks for
// (kubernetes/kubernetes pkg/volume/util/subpath/subpath_windows.go). LinkType and Target of
// what is not a link are null.
func item(c *psCall) (psValue, error) {
	file, err := c.path()
	if err != nil {
		return psValue{}, err
	}
	info, err := os.Lstat(file)
	if err != nil {
		return psValue{}, fileError(c.name, file, err)
	}
	v := psValue{lines: []string{info.Name()}, props: map[string]string{"name": info.Name(), "linktype": "", "target": ""}}
	if to, err := os.Readlink(file); err == nil {
		v.props["linktype"], v.props["target"] = "SymbolicLink", to
	}
	return v, nil
}

func testPath(c *psCall) (psValue, error) {
	file, err := c.path()
	if err != nil {
		return psValue{}, err
	}
	if _, err := os.Stat(file); err != nil {
		return psValue{lines: []string{"False"}}, nil
	}
	return psValue{lines: []string{"True"}}, nil
}

// record is an object whose properties are shown as a list.
func record(properties ...[2]string) psValue {
	v := psValue{lines: []string{""}, props: map[string]string{}}
	for _, p := range properties {
		v.lines = append(v.lines, fmt.Sprintf("%-17s : %s", p[0], p[1]))
		v.props[strings.ToLower(p[0])] = p[1]
	}
	return v
}

// webRequest is Invoke-WebRequest [-Uri] URL [-TimeoutSec N] [-UseBasicParsing].
func webRequest(c *psCall) (psValue, error) {
	seconds, _ := strconv.ParseFloat(c.named["-timeoutsec"], 64)
	u, ok := c.get("-uri")
	if !ok {
		return psValue{}, refuse("Invoke-WebRequest : -Uri is missing")
	}
	res, body, err := fetch(c.p, u, time.Duration(seconds*float64(time.Second)))
	var known *curlError
	switch {
	case errors.As(err, &known) && known.code == 6:
		return psValue{}, &psError{"Invoke-WebRequest : The remote name could not be resolved: '" +
			strings.TrimPrefix(known.text, "Could not resolve host: ") + "'"}
	case errors.As(err, &known) && known.code == 28, errors.Is(err, context.DeadlineExceeded):
		return psValue{}, &psError{"Invoke-WebRequest : The operation has timed out."}
	case err != nil:
		return psValue{}, &psError{"Invoke-WebRequest : Unable to connect to the remote server"}
	case res.StatusCode >= 400:
		return psValue{}, &psError{fmt.Sprintf("Invoke-WebRequest : The remote server returned an error: (%d) %s.", res.StatusCode,
			strings.TrimPrefix(res.Status, fmt.Sprint(res.StatusCode, " ")))}
	}
	return record([2]string{"StatusCode", fmt.Sprint(res.StatusCode)}, [2]string{"StatusDescription", http.StatusText(res.StatusCode)},
		[2]string{"Content", string(body)}, [2]string{"RawContentLength", fmt.Sprint(len(body))}), nil
}

// fetch gets a URL as curl.exe does.
func fetch(p *psScript, u string, within time.Duration) (*http.Response, []byte, error) {
	t := &transfer{o: &curlOptions{connectTimeout: within, maxTime: within}, s: p.s, begin: time.Now(), effective: u}
	ctx := p.ctx
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	at, err := parseURL(u)
	if err != nil {
		return nil, nil, err
	}
	tr := t.transport()
	defer tr.CloseIdleConnections()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	res, err := (&http.Client{Transport: tr}).Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<26))
	return res, body, err
}

// askWinlab is a cmdlet that winlab answers, which has the model of what it shows.
func askWinlab(tool string) func(*psCall) (psValue, error) {
	return func(c *psCall) (psValue, error) {
		at := os.Getenv(relay.Address)
		if at == "" {
			return psValue{}, refuse("winlab: %s is only for machines that winlab simulates", c.name)
		}
		words := []string{tool}
		for _, w := range c.words {
			words = append(words, w.text)
		}
		code, out, errs, err := relay.Ask(c.p.ctx, at, words...)
		if err != nil {
			return psValue{}, refuse("%s : %v", c.name, err)
		}
		fmt.Fprint(c.p.s.err, errs)
		c.p.failed = code != 0
		return psValue{lines: linesOf(out)}, nil
	}
}

// testConnection is Test-NetConnection NAME -Port N (the form is that of Microsoft's page
// of the cmdlet).
func testConnection(c *psCall) (psValue, error) {
	port, host := c.named["-port"], ""
	if v, ok := c.get("-computername"); ok {
		host = v
	}
	if host == "" || port == "" {
		return psValue{}, refuse("winlab: Test-NetConnection here takes a name and -Port")
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		all, err := c.p.s.addresses(c.p.ctx, host)
		if err != nil || len(all) == 0 {
			return psValue{}, refuse("WARNING: Name resolution of %s failed", host)
		}
		a = all[0]
	}
	ctx, cancel := context.WithTimeout(c.p.ctx, 21*time.Second) // a SYN and its repetitions
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port))
	source, succeeded := "", "True"
	if err == nil {
		source, _, _ = net.SplitHostPort(conn.LocalAddr().String())
		_ = conn.Close()
	} else {
		succeeded = "False"
		c.p.s.printf("WARNING: TCP connect to (%s : %s) failed\n", a, port)
	}
	return record([2]string{"ComputerName", host}, [2]string{"RemoteAddress", a.String()}, [2]string{"RemotePort", port},
		[2]string{"SourceAddress", source}, [2]string{"TcpTestSucceeded", succeeded}), nil
}
