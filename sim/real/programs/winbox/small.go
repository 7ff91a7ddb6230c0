package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// whoami prints the user that the environment names: DOMAIN\NAME in small letters.
func whoami(_ context.Context, s *system, args []string) int {
	if len(args) > 0 {
		return s.complain(1, "ERROR: Invalid argument/option - '%s'.\r\nType \"WHOAMI /?\" for usage.", args[0])
	}
	name := strings.ToLower(s.getenv("USERNAME"))
	if domain := s.getenv("USERDOMAIN"); domain != "" {
		name = strings.ToLower(domain) + `\` + name
	}
	s.printf("%s\n", name)
	return 0
}

// hostname prints the machine's name, which is that of DNS and not the one of NetBIOS.
func hostname(_ context.Context, s *system, args []string) int {
	if len(args) > 0 {
		return s.complain(1, "sethostname: Use the Network Control Panel Applet to set hostname.\nhostname -s is not supported.")
	}
	name, err := os.Hostname()
	if err != nil {
		return s.complain(1, "winlab: %v", err)
	}
	s.printf("%s\n", name)
	return 0
}

// nltest answers for the domain of a group managed service account; the runtime that starts
// a container with one names it in WINLAB_DOMAIN.
func nltest(_ context.Context, s *system, args []string) int {
	domain := s.getenv("WINLAB_DOMAIN")
	if len(args) != 1 {
		return s.complain(1, "winlab: nltest here knows /PARENTDOMAIN and /QUERY")
	}
	switch strings.ToLower(args[0]) {
	case "/parentdomain":
		if domain == "" {
			return s.complain(1, "Getting parent domain failed: Status = 1355 0x54b ERROR_NO_SUCH_DOMAIN")
		}
		s.printf("%s. (1)\nThe command completed successfully\n", domain)
	case "/query":
		if domain == "" {
			return s.complain(1, "I_NetLogonControl failed: Status = 1355 0x54b ERROR_NO_SUCH_DOMAIN")
		}
		s.printf("Flags: 0\nConnection Status = 0 0x0 NERR_Success\nThe command completed successfully\n")
	default:
		return s.complain(1, "winlab: nltest here knows /PARENTDOMAIN and /QUERY")
	}
	return 0
}

// timeout waits: timeout /t SECONDS [/nobreak]. Without a console for its input it refuses,
// as the real one does.
func timeout(ctx context.Context, s *system, args []string) int {
	left := -1
	for i := 0; i < len(args); i++ {
		switch a := strings.ToLower(args[i]); {
		case a == "/nobreak":
		case a == "/t" && i+1 < len(args):
			i++
			if n, err := strconv.Atoi(args[i]); err == nil {
				left = n
			}
		default:
			if n, err := strconv.Atoi(a); err == nil {
				left = n
			}
		}
	}
	if left < 0 || left > 99999 {
		return s.complain(1, "ERROR: Invalid value for timeout (/T) specified. Valid range is -1 to 99999 seconds.")
	}
	if f, ok := s.in.(*os.File); ok {
		if i, err := f.Stat(); err != nil || i.Mode()&os.ModeCharDevice == 0 {
			return s.complain(1, "ERROR: Input redirection is not supported, exiting the process immediately.")
		}
	}
	select {
	case <-time.After(time.Duration(left) * time.Second):
		return 0
	case <-ctx.Done():
		return 1
	}
}

// findOptions are those of findstr.
type findOptions struct {
	fold, invert, numbers, begin, end, whole, names bool
	literal, regular                                bool
	patterns                                        []string
	files                                           []string
}

// findArgs reads findstr's arguments: options, the words to look for, files.
func findArgs(args []string) (o findOptions, bad string) {
	given := false
	for _, a := range args {
		l := strings.ToLower(a)
		switch {
		case strings.HasPrefix(l, "/c:"):
			o.patterns, o.literal, given = append(o.patterns, a[3:]), true, true
		case strings.HasPrefix(a, "/") && len(a) > 1:
			for _, c := range l[1:] {
				switch c {
				case 'i':
					o.fold = true
				case 'v':
					o.invert = true
				case 'n':
					o.numbers = true
				case 'b':
					o.begin = true
				case 'e':
					o.end = true
				case 'x':
					o.whole = true
				case 'm':
					o.names = true
				case 'r':
					o.regular = true
				case 'l':
					o.literal = true
				default:
					return o, a
				}
			}
		case !given:
			o.patterns, given = strings.Fields(a), true // one of several words
		default:
			o.files = append(o.files, a)
		}
	}
	return o, ""
}

// findstr prints the lines that have one of the words. 0 is found, 1 not, 2 an error.
func findstr(_ context.Context, s *system, args []string) int {
	o, bad := findArgs(args)
	switch {
	case bad != "":
		return s.complain(2, "FINDSTR: %s ignored", bad)
	case len(o.patterns) == 0:
		return s.complain(2, "FINDSTR: Bad command line")
	}
	var any []string
	for _, p := range o.patterns {
		if o.literal && !o.regular {
			p = regexp.QuoteMeta(p)
		} else {
			p = strings.NewReplacer(`+`, `\+`, `?`, `\?`, `(`, `\(`, `)`, `\)`, `{`, `\{`, `}`, `\}`, `|`,
				`\|`).Replace(p) // only . * ^ $ [] \ mean something
		}
		any = append(any, p)
	}
	form := "(?:" + strings.Join(any, "|") + ")"
	if o.begin || o.whole {
		form = "^" + form
	}
	if o.end || o.whole {
		form += "$"
	}
	if o.fold {
		form = "(?i)" + form
	}
	re, err := regexp.Compile(form)
	if err != nil {
		return s.complain(2, "FINDSTR: Bad command line")
	}
	found := false
	if len(o.files) == 0 {
		found = o.search(s, re, s.in, "")
	}
	for _, name := range o.files {
		f, err := os.Open(name)
		if err != nil {
			s.complain(2, "FINDSTR: Cannot open %s", name)
			continue
		}
		prefix := ""
		if len(o.files) > 1 {
			prefix = name + ":"
		}
		found = o.search(s, re, f, prefix) || found
		_ = f.Close()
	}
	if !found {
		return 1
	}
	return 0
}

func (o *findOptions) search(s *system, re *regexp.Regexp, in io.Reader, prefix string) (found bool) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if re.MatchString(line) == o.invert {
			continue
		}
		found = true
		if o.names {
			s.printf("%s\n", strings.TrimSuffix(prefix, ":"))
			return true
		}
		number := ""
		if o.numbers {
			number = strconv.Itoa(n) + ":"
		}
		s.printf("%s%s%s\n", prefix, number, line)
	}
	return found
}
