package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"os"
	"strings"
	"unicode/utf16"
)

// powershell is powershell.exe: -Command, -File, -EncodedCommand, or lines of its input. It
// runs the forms of scripts that Kubernetes' components, its tests and its documents give to
// it, see psScript and psForms. All else is an error that begins with "winlab:".
func powershell(ctx context.Context, s *system, args []string) int {
	script, file, given, bad := psArgs(args)
	if bad != "" {
		return s.complain(1, "winlab: powershell.exe here does not know %s", bad)
	}
	p := &psScript{ctx: ctx, s: s, vars: map[string][]string{}}
	switch {
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return s.complain(-196608&0xff,
				"The argument '%s' to the -File parameter does not exist. Provide the path to an existing '.ps1' file as an argument to the -File parameter.", file)
		}
		return p.exitCode(string(text))
	case given && script != "-":
		return p.exitCode(script)
	}
	// Line by line, as from a console.
	lines := bufio.NewScanner(s.in)
	lines.Buffer(nil, 1<<20)
	code := 0
	for lines.Scan() && ctx.Err() == nil && !p.ended {
		code = p.exitCode(lines.Text())
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
