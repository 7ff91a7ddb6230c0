package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"unicode/utf16"
)

// powershell is powershell.exe: -Command, -File, -EncodedCommand, or lines of its input.
func powershell(ctx context.Context, s *system, args []string) int {
	script, file, given, bad := psArgs(args)
	if bad != "" {
		return s.complain(1, "winlab: powershell.exe here does not know %s", bad)
	}
	i := &interp{ctx: ctx, s: s, vars: map[string]any{}, jobs: new([]*psJob), ok: true}
	switch {
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return s.complain(-196608&0xff,
				"The argument '%s' to the -File parameter does not exist. Provide the path to an existing '.ps1' file as an argument to the -File parameter.", file)
		}
		return i.script(strings.TrimPrefix(string(text), "\ufeff"))
	case given && script != "-":
		return i.script(script)
	}
	// Line by line, as from a console.
	lines := bufio.NewScanner(s.in)
	lines.Buffer(nil, 1<<20)
	code := 0
	for lines.Scan() {
		if ctx.Err() != nil {
			return 1
		}
		var done bool
		if code, done = i.line(lines.Text()); done {
			break
		}
	}
	return code
}

// psArgs reads the options of powershell.exe (about_PowerShell_exe).
func psArgs(args []string) (script, file string, given bool, bad string) {
	for k := 0; k < len(args); k++ {
		a := strings.ToLower(args[k])
		if !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "/") || a == "-" {
			return strings.Join(args[k:], " "), "", true, ""
		}
		is := func(name string, least int) bool { return len(a)-1 >= least && strings.HasPrefix(name, a[1:]) }
		switch {
		case is("command", 1):
			return strings.Join(args[k+1:], " "), "", true, ""
		case is("noprofile", 3), is("nologo", 3), is("noninteractive", 4), is("sta", 3), is("mta", 3), is("noexit", 3):
		case is("executionpolicy", 2), a == "-ep", is("windowstyle", 1), is("inputformat", 2), is("outputformat", 1), is("version", 1):
			k++
		case is("file", 1):
			if k+1 < len(args) {
				return "", args[k+1], true, ""
			}
			return "", "", false, args[k] + " without a file"
		case is("encodedcommand", 1), a == "-ec":
			if k+1 >= len(args) {
				return "", "", false, args[k] + " without a command"
			}
			raw, err := base64.StdEncoding.DecodeString(args[k+1])
			if err != nil || len(raw)%2 != 0 {
				return "", "", false, args[k] + " with that text: it is base64 of UTF-16"
			}
			units := make([]uint16, 0, len(raw)/2)
			for n := 0; n+1 < len(raw); n += 2 {
				units = append(units, uint16(raw[n])|uint16(raw[n+1])<<8)
			}
			return string(utf16.Decode(units)), "", true, ""
		default:
			return "", "", false, args[k]
		}
	}
	return "", "", false, ""
}

// script runs a whole script and returns the exit code: that of exit, or 1 when the last
// command has failed.
func (i *interp) script(text string) int {
	code, _ := i.line(text)
	return code
}

// line runs a script; done says that it has ended the program.
func (i *interp) line(text string) (code int, done bool) {
	body, err := psParse(text)
	if err == nil {
		err = i.run(body, i.print)
	}
	var f *flow
	switch {
	case err == nil:
		if i.ok {
			return 0, false
		}
		return 1, false
	case errors.As(err, &f) && f.word == "exit":
		n, _ := number64(f.v)
		return int(n), true
	case errors.As(err, &f) && f.word != "throw":
		return 0, f.word == "return"
	case i.ctx.Err() != nil:
		return 1, true
	}
	return i.s.complain(1, "%v", err), false
}

// print writes a value as the console shows it.
func (i *interp) print(v any) error {
	switch v := v.(type) {
	case nil:
	case *psTable:
		i.s.printf("\n%-30s %s\n%-30s %s\n", "Name", "Value", "----", "-----")
		for _, k := range v.keys {
			i.s.printf("%-30s %s\n", show(v.names[k]), show(v.values[k]))
		}
		i.s.printf("\n")
	case []any, psRange:
		return each(v, i.print)
	default:
		i.s.printf("%s\n", show(v))
	}
	return nil
}
