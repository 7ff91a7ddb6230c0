package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func yes(context.Context, *system, []string) int { return 0 }

func no(context.Context, *system, []string) int { return 1 }

// sleep waits: sleep SECONDS...
func sleep(ctx context.Context, s *system, args []string) int {
	var d time.Duration
	for _, a := range args {
		n, err := strconv.ParseFloat(strings.TrimRight(a, "smhd"), 64)
		unit := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour,
			"d": 24 * time.Hour}[strings.TrimLeft(a, "0123456789.")]
		if err != nil || n < 0 || unit == 0 {
			return s.fail(1, "sleep: invalid number '%s'", a)
		}
		d += time.Duration(n * float64(unit))
	}
	if len(args) == 0 {
		return s.fail(1, "sleep: missing operand")
	}
	if wait(ctx, d) != nil {
		return 130
	}
	return 0
}

// hostname prints the machine's name.
func hostname(_ context.Context, s *system, args []string) int {
	if len(args) > 0 {
		return s.unknown("hostname", args[0])
	}
	name, err := os.Hostname()
	if err != nil {
		return s.fail(1, "hostname: %v", err)
	}
	s.printf("%s\n", name)
	return 0
}

// seq prints numbers: seq [FIRST [STEP]] LAST.
func seq(_ context.Context, s *system, args []string) int {
	n := []int64{1, 1}
	for _, a := range args {
		i, err := strconv.ParseInt(a, 10, 64)
		if err != nil {
			return s.unknown("seq", a)
		}
		n = append(n, i)
	}
	first, step, last := int64(1), int64(1), int64(0)
	switch len(args) {
	case 1:
		last = n[2]
	case 2:
		first, last = n[2], n[3]
	case 3:
		first, step, last = n[2], n[3], n[4]
	default:
		return s.fail(1, "seq: missing operand")
	}
	if step == 0 {
		return s.fail(1, "seq: the step is 0")
	}
	w := bufio.NewWriter(s.out)
	for i := first; step > 0 && i <= last || step < 0 && i >= last; i += step {
		_, _ = w.WriteString(strconv.FormatInt(i, 10) + "\n")
	}
	if w.Flush() != nil {
		return 1
	}
	return 0
}

// files calls f with each file, or with the input where there is none or it is "-". It
// returns 1 when one could not be read.
func (s *system) files(program string, names []string, f func(name string, r io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		if name == "-" {
			if f(name, s.in) != nil {
				code = 1
			}
			continue
		}
		r, err := os.Open(s.path(name))
		if err == nil {
			err = errors.Join(f(name, r), r.Close())
		}
		if err != nil {
			code = s.fail(1, "%s: can't open '%s': %s", program, name, unixError(err))
		}
	}
	return code
}

// unixError is an error in the words of Unix.
func unixError(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrExist):
		return "File exists"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	return err.Error()
}

// cat prints files.
func cat(_ context.Context, s *system, args []string) int {
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") && a != "-" }); i >= 0 {
		return s.unknown("cat", args[i])
	}
	return s.files("cat", args, func(_ string, r io.Reader) error {
		_, err := io.Copy(s.out, r)
		return err
	})
}

// env prints the environment.
func env(_ context.Context, s *system, args []string) int {
	if len(args) > 0 {
		return s.unknown("env", args[0])
	}
	for _, e := range s.environ {
		s.printf("%s\n", e)
	}
	return 0
}

// date prints the time: date [+FORMAT].
func date(_ context.Context, s *system, args []string) int {
	format, now := "+%a %b %e %H:%M:%S UTC %Y", time.Now().UTC()
	if len(args) == 1 && strings.HasPrefix(args[0], "+") {
		format = args[0]
	} else if len(args) > 0 {
		return s.unknown("date", args[0])
	}
	in := map[byte]string{'a': "Mon", 'b': "Jan", 'd': "02", 'e': "_2", 'F': "2006-01-02", 'H': "15", 'm': "01", 'M': "04", 'S': "05",
		'T': "15:04:05", 'Y': "2006"}
	var b strings.Builder
	for i := 1; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch layout, ok := in[format[i]]; {
		case ok:
			b.WriteString(now.Format(layout))
		case format[i] == 's':
			b.WriteString(strconv.FormatInt(now.Unix(), 10))
		case format[i] == '%':
			b.WriteByte('%')
		default:
			return s.unknown("date", "%"+string(format[i]))
		}
	}
	s.printf("%s\n", b.String())
	return 0
}

// dd copies blocks: dd if=FILE of=FILE bs=SIZE count=N. /dev/zero and /dev/urandom are there
// without a device, as in busybox for Windows.
func dd(ctx context.Context, s *system, args []string) int {
	value := map[string]string{"bs": "512"}
	for _, a := range args {
		name, v, ok := strings.Cut(a, "=")
		if !ok || !slices.Contains([]string{"if", "of", "bs", "count"}, name) {
			return s.unknown("dd", a)
		}
		value[name] = v
	}
	size, err := blockSize(value["bs"])
	if err != nil {
		return s.fail(1, "dd: invalid number '%s'", value["bs"])
	}
	in, out := s.in, s.out
	switch name := value["if"]; name {
	case "":
	case "/dev/zero":
		in = zeros{}
	case "/dev/urandom", "/dev/random":
		in = rand.Reader
	default:
		f, err := os.Open(s.path(name))
		if err != nil {
			return s.fail(1, "dd: can't open '%s': %s", name, unixError(err))
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	if name := value["of"]; name != "" {
		f, err := os.Create(s.path(name))
		if err != nil {
			return s.fail(1, "dd: can't open '%s': %s", name, unixError(err))
		}
		defer func() { _ = f.Close() }()
		out = f
	}
	if n, ok := value["count"]; ok {
		count, err := blockSize(n)
		if err != nil {
			return s.fail(1, "dd: invalid number '%s'", n)
		}
		in = io.LimitReader(in, size*count)
	}
	b := make([]byte, size)
	whole, part, all := 0, 0, int64(0)
	for ctx.Err() == nil {
		n, err := io.ReadFull(in, b)
		if n == len(b) {
			whole++
		} else if n > 0 {
			part++
		}
		all += int64(n)
		if _, bad := out.Write(b[:n]); bad != nil {
			return s.fail(1, "dd: error writing '%s': %s", value["of"], unixError(bad))
		}
		if err != nil {
			break
		}
	}
	s.fail(0, "%d+%d records in\n%d+%d records out\n%d bytes copied", whole, part, whole, part, all)
	return 0
}

// blockSize is a number of dd: 512, 4k, 1M.
func blockSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "kKMG")
	unit, ok := map[string]int64{"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !ok || n <= 0 {
		return 0, errors.New("not a size")
	}
	return n * unit, nil
}

// zeros is /dev/zero.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func egrep(ctx context.Context, s *system, args []string) int {
	return grep(ctx, s, append([]string{"-E"}, args...))
}

// grepOptions are those of grep.
type grepOptions struct {
	invert, fold, quiet, count, fixed, extended, only bool

	pattern string
	given   bool
	most    int
}

// grepArgs reads the options; code is that of a mistake.
func grepArgs(s *system, args []string) (o grepOptions, rest []string, code int) {
	o.most = -1
	flags := map[rune]*bool{'v': &o.invert, 'i': &o.fold, 'q': &o.quiet, 'c': &o.count, 'F': &o.fixed, 'E': &o.extended, 'o': &o.only}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i, c := range a[1:] {
			if f := flags[c]; f != nil {
				*f = true
				continue
			}
			if c != 'e' && c != 'm' || i != len(a)-2 || len(args) == 0 {
				return o, nil, s.unknown("grep", a)
			}
			value := args[0]
			args = args[1:]
			if c == 'e' {
				o.pattern, o.given = value, true
			} else if n, err := strconv.Atoi(value); err == nil {
				o.most = n
			} else {
				return o, nil, s.fail(2, "grep: invalid number '%s'", value)
			}
		}
	}
	if !o.given {
		if len(args) == 0 {
			return o, nil, s.fail(2, "grep: no pattern")
		}
		o.pattern, args = args[0], args[1:]
	}
	return o, args, 0
}

// expression is the pattern in Go's syntax.
func (o *grepOptions) expression() (*regexp.Regexp, error) {
	p := o.pattern
	if o.fixed {
		p = regexp.QuoteMeta(p)
	} else if !o.extended {
		p = basic(p)
	}
	if o.fold {
		p = "(?i)" + p
	}
	return regexp.Compile(p)
}

// grep prints the lines with a pattern: 0 is found, 1 not found, 2 an error.
func grep(_ context.Context, s *system, args []string) int {
	o, args, code := grepArgs(s, args)
	if code != 0 {
		return code
	}
	re, err := o.expression()
	if err != nil {
		return s.fail(2, "grep: bad regex '%s'", o.pattern)
	}
	found := 0
	bad := s.files("grep", args, func(name string, r io.Reader) error {
		prefix := ""
		if len(args) > 1 {
			prefix = name + ":"
		}
		in := bufio.NewScanner(r)
		in.Buffer(nil, 1<<20)
		for in.Scan() && found != o.most {
			line := strings.TrimSuffix(in.Text(), "\r")
			if re.MatchString(line) == o.invert {
				continue
			}
			found++
			switch {
			case o.quiet, o.count:
			case o.only:
				for _, m := range re.FindAllString(line, -1) {
					s.printf("%s%s\n", prefix, m)
				}
			default:
				s.printf("%s%s\n", prefix, line)
			}
		}
		return in.Err()
	})
	if o.count {
		s.printf("%d\n", found)
	}
	switch {
	case found > 0 && (o.quiet || bad == 0):
		return 0
	case bad != 0:
		return 2
	}
	return 1
}

// basic is a basic regular expression in Go's syntax: what has a backslash in the one has
// none in the other.
func basic(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\' && i+1 < len(p) && strings.ContainsRune("(){}|+?", rune(p[i+1])):
			i++
			b.WriteByte(p[i])
		case c == '\\' && i+1 < len(p):
			b.WriteString(p[i : i+2])
			i++
		case strings.ContainsRune("(){}|+?", rune(c)):
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// lineCount reads the number of lines of head and tail: -N, -n N or -nN.
func lineCount(s *system, program string, args []string) (n string, rest []string, code int) {
	n = "10"
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0][1:]
		args = args[1:]
		switch {
		case a == "n" && len(args) > 0:
			n, args = args[0], args[1:]
		case strings.HasPrefix(a, "n"):
			n = a[1:]
		case strings.Trim(a, "0123456789") == "":
			n = a
		default:
			return "", nil, s.unknown(program, "-"+a)
		}
	}
	if _, err := strconv.Atoi(n); err != nil {
		return "", nil, s.fail(1, "%s: invalid number '%s'", program, n)
	}
	return n, args, 0
}

func head(_ context.Context, s *system, args []string) int {
	n, args, code := lineCount(s, "head", args)
	if code != 0 {
		return code
	}
	most, _ := strconv.Atoi(n)
	return s.files("head", args, func(_ string, r io.Reader) error {
		in := bufio.NewReader(r)
		for range most {
			line, err := in.ReadString('\n')
			s.printf("%s", line)
			if err != nil {
				return nil
			}
		}
		return nil
	})
}

// tail prints the last lines, or with +N all from the line N on.
func tail(_ context.Context, s *system, args []string) int {
	n, args, code := lineCount(s, "tail", args)
	if code != 0 {
		return code
	}
	k, _ := strconv.Atoi(n)
	return s.files("tail", args, func(_ string, r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		lines := slices.Collect(strings.Lines(string(text)))
		from := len(lines) - k
		if strings.HasPrefix(n, "+") {
			from = k - 1
		}
		for _, l := range lines[min(max(from, 0), len(lines)):] {
			s.printf("%s", l)
		}
		return nil
	})
}

// wc counts: wc -l, -w or -c of its input or a file.
func wc(_ context.Context, s *system, args []string) int {
	if len(args) == 0 || !slices.Contains([]string{"-l", "-w", "-c"}, args[0]) {
		return s.unknown("wc", strings.Join(args, " "))
	}
	return s.files("wc", args[1:], func(name string, r io.Reader) error {
		text, err := io.ReadAll(r)
		n := map[string]int{"-l": bytes.Count(text, []byte("\n")), "-w": len(bytes.Fields(text)), "-c": len(text)}[args[0]]
		if name == "-" {
			s.printf("%d\n", n)
		} else {
			s.printf("%d %s\n", n, name)
		}
		return err
	})
}

// tr deletes characters: tr -d CHARACTERS; or translates them one by one.
func tr(_ context.Context, s *system, args []string) int {
	text, err := io.ReadAll(s.in)
	if err != nil || len(args) != 2 {
		return s.unknown("tr", strings.Join(args, " "))
	}
	plain := strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\t`, "\t", `\0`, "\x00", `\\`, `\`)
	from, to := plain.Replace(args[0]), plain.Replace(args[1])
	if args[0] == "-d" {
		from, to = to, ""
	}
	if strings.ContainsAny(from+to, "[") || strings.Contains(from, "-") && len(from) > 1 {
		return s.unknown("tr", "ranges and classes")
	}
	s.printf("%s", strings.Map(func(r rune) rune {
		i := strings.IndexRune(from, r)
		switch {
		case i < 0:
			return r
		case to == "":
			return -1
		}
		return rune(to[min(i, len(to)-1)])
	}, string(text)))
	return 0
}

// mkdir makes folders: mkdir [-p] FOLDER...
func mkdir(_ context.Context, s *system, args []string) int {
	make := os.Mkdir
	if len(args) > 0 && args[0] == "-p" {
		make, args = os.MkdirAll, args[1:]
	}
	code := 0
	for _, a := range args {
		if err := make(s.path(a), 0o777); err != nil {
			code = s.fail(1, "mkdir: can't create directory '%s': %s", a, unixError(err))
		}
	}
	return code
}

// rm removes files: rm [-r] [-f] FILE...
func rm(_ context.Context, s *system, args []string) int {
	remove, force := os.Remove, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		for _, o := range args[0][1:] {
			switch o {
			case 'r', 'R':
				remove = os.RemoveAll
			case 'f':
				force = true
			default:
				return s.unknown("rm", args[0])
			}
		}
		args = args[1:]
	}
	code := 0
	for _, a := range args {
		if err := remove(s.path(a)); err != nil && (!force || !errors.Is(err, fs.ErrNotExist)) {
			code = s.fail(1, "rm: can't remove '%s': %s", a, unixError(err))
		}
	}
	return code
}

// touch makes empty files, and sets the time of others.
func touch(_ context.Context, s *system, args []string) int {
	code := 0
	for _, a := range args {
		f, err := os.OpenFile(s.path(a), os.O_CREATE|os.O_WRONLY, 0o666)
		if err == nil {
			err = errors.Join(f.Close(), os.Chtimes(s.path(a), time.Now(), time.Now()))
		}
		if err != nil {
			code = s.fail(1, "touch: %s: %s", a, unixError(err))
		}
	}
	return code
}

// ls prints the names in folders, one a line.
func ls(_ context.Context, s *system, args []string) int {
	if len(args) > 0 && args[0] == "-1" {
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	code := 0
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			return s.unknown("ls", a)
		}
		i, err := os.Stat(s.path(a))
		if err != nil {
			code = s.fail(1, "ls: %s: %s", a, unixError(err))
			continue
		}
		if !i.IsDir() {
			s.printf("%s\n", a)
			continue
		}
		all, err := os.ReadDir(s.path(a))
		if err != nil {
			code = s.fail(1, "ls: %s: %s", a, unixError(err))
		}
		for _, e := range all {
			s.printf("%s\n", e.Name())
		}
	}
	return code
}
