package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// psCall is a call of a command: its parameters and the values that come through the
// pipeline.
type psCall struct {
	i     *interp
	name  string
	named map[string]any
	args  []any
	raw   []string // all of them as text
	input []any
	piped bool
	emit  emitter
}

// errCommand is a command's failure that does not end the script.
type errCommand struct{ text string }

func (e *errCommand) Error() string { return e.text }

func refuse(format string, args ...any) error { return &errCommand{fmt.Sprintf(format, args...)} }

// aliases of commands (about_Aliases).
var aliases = map[string]string{
	"sleep": "start-sleep", "echo": "write-output", "write": "write-output", "cat": "get-content", "type": "get-content", "gc": "get-content",
	"sc": "set-content", "ac": "add-content", "ls": "get-childitem", "dir": "get-childitem", "gci": "get-childitem", "rm": "remove-item",
	"del": "remove-item",
	"ri":  "remove-item", "rmdir": "remove-item", "ni": "new-item", "md": "mkdir", "cp": "copy-item", "copy": "copy-item",
	"%":       "foreach-object",
	"foreach": "foreach-object", "?": "where-object", "where": "where-object", "sajb": "start-job", "gjb": "get-job", "wjb": "wait-job",
	"iwr":  "invoke-webrequest",
	"wget": "invoke-webrequest", "curl": "invoke-webrequest", "cd": "set-location", "pwd": "get-location", "select": "select-object",
	"tnc": "test-netconnection",
}

// switches are parameters without a value.
var switches = []string{"-usebasicparsing", "-force", "-recurse", "-nonewline", "-name", "-verbose", "-passthru", "-append", "-wait",
	"-raw", "-nonewwindow", "-skipcertificatecheck"}

var cmdlets map[string]func(*psCall) error

func init() {
	cmdlets = map[string]func(*psCall) error{
		"start-sleep": sleepFor, "write-host": writeHost, "write-output": writeOutput, "write-error": writeError_,
		"out-null":   func(*psCall) error { return nil },
		"out-string": func(c *psCall) error { return c.emit(joined(c.input)) }, "out-file": outFile, "out-default": passOn, "format-list": passOn,
		"format-table": passOn,
		"get-content":  getContent, "set-content": setContent, "add-content": setContent, "get-childitem": children, "test-path": testPath,
		"get-item": item,
		"new-item": newItem, "mkdir": makeFolder, "remove-item": removeItem, "copy-item": copyItem,
		"get-date":       func(c *psCall) error { return c.emit(time.Now().Format("Monday, January 2, 2006 3:04:05 PM")) },
		"foreach-object": forEachObject, "where-object": whereObject, "select-object": selectObject,
		"start-job": startJob, "get-job": getJobs, "wait-job": waitJobs, "receive-job": passOn,
		"new-object": newObject, "invoke-webrequest": webRequest, "resolve-dnsname": asked("Resolve-DnsName", "powershell", "Resolve-DnsName"),
		"get-netnat": asked("Get-NetNat", "get-netnat"), "test-netconnection": testConnection,
		"get-netadapter": adapters, "get-netipaddress": netAddresses, "set-location": setLocation,
		"get-location": func(c *psCall) error { return c.emit(c.i.variable("pwd")) },
		"get-host":     func(c *psCall) error { return nil },
	}
}

func passOn(c *psCall) error { return each(c.input, c.emit) }

// command runs a cmdlet or another program.
func (i *interp) command(n nCmd, input []any, piped bool, emit emitter) error {
	name, err := i.value(n.name)
	if err != nil {
		return err
	}
	if b, ok := name.(nBlock); ok { // & { ... }
		return i.run(b.body, emit)
	}
	if n.file != nil {
		return i.toFile(n, input, piped)
	}
	c := &psCall{i: i, name: strings.ToLower(show(name)), named: map[string]any{}, input: input, piped: piped, emit: emit}
	if full, ok := aliases[c.name]; ok {
		c.name = full
	}
	if err := c.arguments(n.args); err != nil {
		return err
	}
	i.ok = true
	if f, ok := cmdlets[c.name]; ok {
		err = f(c)
	} else if strings.HasSuffix(c.name, ".ps1") {
		text, readErr := os.ReadFile(show(name))
		if readErr != nil {
			return i.failed(c, refuse("%s", unknownCommand(show(name))))
		}
		if code := i.script(string(text)); code != 0 {
			i.ok, i.last = false, code
		}
	} else {
		err = i.native(append([]string{show(name)}, c.raw...), input, piped, emit)
		if errors.Is(err, errUnknownCommand) {
			err = refuse("%s", unknownCommand(show(name)))
		}
	}
	return i.failed(c, err)
}

func unknownCommand(name string) string {
	if verb, noun, ok := strings.Cut(name, "-"); ok && verb != "" && noun != "" && !strings.ContainsAny(name, `\/.`) {
		return "winlab: powershell.exe here does not know " + name
	}
	return name + " : The term '" + name + "' is not recognized as the name of a cmdlet, function, script file, or operable program. " +
		"Check the spelling of the name, or if a path was included, verify that the path is correct and try again."
}

// failed prints what a command complains about; the script goes on.
func (i *interp) failed(c *psCall, err error) error {
	var e *errCommand
	if !errors.As(err, &e) {
		return err
	}
	action := c.named["-erroraction"]
	if action == nil {
		action = i.vars["erroractionpreference"] // about_Preference_Variables
	}
	if strings.EqualFold(show(action), "stop") {
		return &flow{"throw", e.text}
	}
	i.ok = false
	if !strings.EqualFold(show(action), "silentlycontinue") {
		i.s.complain(0, "%s", e.text)
	}
	return nil
}

// arguments evaluates what a command is given: a parameter takes the next value, unless it
// is a switch.
func (c *psCall) arguments(all []nArg) error {
	for k := 0; k < len(all); k++ {
		a := all[k]
		var v any
		var err error
		if a.value != nil {
			if v, err = c.i.value(a.value); err != nil {
				return err
			}
		}
		if a.name == "" {
			c.args = append(c.args, v)
			_ = each(v, func(x any) error { c.raw = append(c.raw, show(x)); return nil })
			continue
		}
		c.raw = append(c.raw, a.name)
		name := strings.ToLower(a.name)
		switch {
		case a.value != nil:
		case slices.Contains(switches, name) || k+1 == len(all) || all[k+1].name != "":
			v = true
		case cmdlets[c.name] != nil:
			k++
			if v, err = c.i.value(all[k].value); err != nil {
				return err
			}
			c.raw = append(c.raw, show(v))
		}
		c.named[name] = v
	}
	return nil
}

// get is a parameter by one of its names or the beginning of one, or by its place.
func (c *psCall) get(place int, names ...string) (any, bool) {
	for _, name := range names {
		for given, v := range c.named {
			if len(given) > 1 && strings.HasPrefix(name, given) {
				return v, true
			}
		}
	}
	if place >= 0 && place < len(c.args) {
		return c.args[place], true
	}
	return nil, false
}

func (c *psCall) path() (string, error) {
	v, ok := c.get(0, "-path", "-literalpath", "-filepath", "-destination")
	if !ok {
		return "", refuse("%s : a path is missing", c.name)
	}
	return show(v), nil
}

// toFile runs a command whose output goes to a file.
func (i *interp) toFile(n nCmd, input []any, piped bool) error {
	name, err := i.value(n.file)
	if err != nil {
		return err
	}
	file, appends := show(name), n.appends
	n.file = nil
	var all []any
	err = i.inside(func() error {
		return i.command(n, input, piped, func(v any) error { all = append(all, v); return nil })
	})
	if err != nil || name == nil {
		return err
	}
	c := &psCall{i: i, name: "out-file"}
	return i.failed(c, save(c, file, all, appends))
}

func joined(all []any) string {
	var b strings.Builder
	for _, v := range all {
		b.WriteString(show(v) + "\r\n")
	}
	return b.String()
}

// save writes values to a file, a line each.
func save(c *psCall, file string, all []any, appends bool) error {
	how := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if appends {
		how = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(file, how, 0o644)
	if err == nil {
		_, err = f.WriteString(joined(all))
		err = errors.Join(err, f.Close())
	}
	return fileError(c, file, err)
}

// fileError words an error of a file as PowerShell does.
func fileError(c *psCall, file string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return refuse("%s : Cannot find path '%s' because it does not exist.", c.name, absolute(file))
	case errors.Is(err, os.ErrPermission):
		return refuse("%s : Access to the path '%s' is denied.", c.name, absolute(file))
	}
	return refuse("%s : %v", c.name, err)
}

func absolute(file string) string {
	if full, err := filepath.Abs(file); err == nil {
		return full
	}
	return file
}

func sleepFor(c *psCall) error {
	v, ok := c.get(0, "-seconds", "-duration")
	unit := time.Second
	if ms, is := c.get(-1, "-milliseconds"); is {
		v, ok, unit = ms, true, time.Millisecond
	}
	n, number := number64(v)
	if !ok || !number || n < 0 || n > 1e9 {
		return refuse("Start-Sleep : Cannot validate argument on parameter 'Seconds'.")
	}
	select {
	case <-time.After(time.Duration(n * float64(unit))):
		return nil
	case <-c.i.ctx.Done():
		return c.i.ctx.Err()
	}
}

func (c *psCall) values(place int, names ...string) []any {
	var all []any
	if v, ok := c.get(-1, names...); ok {
		all = append(all, v)
	}
	all = append(all, c.args[min(place, len(c.args)):]...)
	if c.piped {
		all = append(all, c.input...)
	}
	return all
}

func writeHost(c *psCall) error {
	text := show(c.values(0, "-object"))
	if truth(c.named["-nonewline"]) {
		c.i.s.printf("%s", text)
	} else {
		c.i.s.printf("%s\n", text)
	}
	return nil
}

func writeOutput(c *psCall) error {
	return each(c.values(0, "-inputobject"), func(v any) error { return each(v, c.emit) })
}

func writeError_(c *psCall) error { return refuse("%s", show(c.values(0, "-message"))) }

func outFile(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	return save(c, file, c.input, truth(c.named["-append"]))
}

func getContent(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fileError(c, file, err)
	}
	if truth(c.named["-raw"]) {
		return c.emit(string(text))
	}
	if len(text) == 0 {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n") {
		if err := c.emit(line); err != nil {
			return err
		}
	}
	return nil
}

func setContent(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	place := 1
	if _, named := c.get(-1, "-path", "-literalpath"); named {
		place = 0
	}
	return save(c, file, c.values(place, "-value"), c.name == "add-content")
}
