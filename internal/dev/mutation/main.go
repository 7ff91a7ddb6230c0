package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	n := flag.Int("sample", 0, "how many changes to try in each package; 0 is all")
	listOnly := flag.Bool("list", false, "print the changes that would be tried, and try none")
	least := flag.Float64("least", 0, "fail when less than this share of the changes, in percent, is noticed")
	limit := flag.Duration("timeout", 30*time.Second, "how long the tests of a package may take")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutation [flags] PACKAGE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := &tester{out: os.Stdout, n: *n, listOnly: *listOnly, limit: *limit}
	if err := t.tryPackages(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
	for _, s := range t.scores {
		if s.percent() < *least {
			fmt.Fprintf(os.Stderr, "mutation: %s: %.1f %% of the changes were noticed, and %.1f %% are asked for\n", s.pkg, s.percent(), *least)
			os.Exit(1)
		}
	}
}

// tester tries the mutants of packages and writes what came of it.
type tester struct {
	out      io.Writer
	n        int
	listOnly bool
	limit    time.Duration
	scores   []score
}

// score is the result of one package.
type score struct {
	pkg            string
	tried, noticed int // of those that compile
}

func (s score) percent() float64 {
	if s.tried == 0 {
		return 100
	}
	return 100 * float64(s.noticed) / float64(s.tried)
}

func (t *tester) tryPackages(ctx context.Context, patterns []string) error {
	var ps []pkg
	for _, pattern := range patterns {
		more, err := list(ctx, pattern)
		if err != nil {
			return err
		}
		ps = append(ps, more...)
	}
	for _, p := range ps {
		if err := t.tryPackage(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	if t.listOnly {
		return nil
	}
	fmt.Fprintf(t.out, "\n%-50s %8s %8s %9s %8s\n", "package", "changes", "noticed", "survived", "share")
	for _, s := range t.scores {
		fmt.Fprintf(t.out, "%-50s %8d %8d %9d %6.1f %%\n", s.pkg, s.tried, s.noticed, s.tried-s.noticed, s.percent())
	}
	return nil
}

// tryPackage tries the mutants of one package, and prints those that survive.
func (t *tester) tryPackage(ctx context.Context, p pkg) error {
	ms, err := find(p.Dir, p.GoFiles)
	if err != nil {
		return err
	}
	total := len(ms)
	ms = sample(ms, t.n)
	fmt.Fprintf(t.out, "%s: %d of %d changes\n", p.ImportPath, len(ms), total)
	if t.listOnly {
		for _, m := range ms {
			t.print(m)
		}
		return nil
	}
	scratch, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := &runner{pkg: p, scratch: scratch, limit: t.limit}
	binary := filepath.Join(scratch, "all.test")
	inside, err := r.together(ctx, binary, ms)
	if err != nil {
		return err
	}
	if fails, err := r.notices(ctx, binary, 0); err != nil || fails {
		return errors.Join(errors.New("the tests fail without any change"), err)
	}
	s := score{pkg: p.ImportPath}
	for _, m := range inside {
		if err := t.count(ctx, r, &s, binary, m); err != nil {
			return err
		}
	}
	one := filepath.Join(scratch, "one.test")
	for _, m := range ms {
		if m.fn != nil {
			continue
		}
		if ok, err := r.buildWithMutant(ctx, one, m); err != nil {
			return err
		} else if ok {
			if err := t.count(ctx, r, &s, one, m); err != nil {
				return err
			}
		}
	}
	t.scores = append(t.scores, s)
	return nil
}

// count runs the tests against one mutant.
func (t *tester) count(ctx context.Context, r *runner, s *score, binary string, m mutant) error {
	yes, err := r.notices(ctx, binary, m.number)
	if err != nil {
		return err
	}
	s.tried++
	if yes {
		s.noticed++
	} else {
		t.print(m)
	}
	return nil
}

func (t *tester) print(m mutant) {
	fmt.Fprintf(t.out, "  %s:%d: %s\n", filepath.Base(m.File), m.Line, m.What)
}
