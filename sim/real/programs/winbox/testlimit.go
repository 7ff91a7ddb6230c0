package main

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// limitOptions are those of testlimit that take memory.
type limitOptions struct {
	bytes int
	every time.Duration
	count int // 0 is as often as it can
}

// limitArgs reads testlimit's arguments: -d MEGABYTES, which leaks and touches memory, -e
// SECONDS between two times, -c how often. Others mean other kinds of leaks. What is no
// option is passed over: Kubernetes' tests write "-e 5 20000s".
func limitArgs(args []string) (o limitOptions, bad string) {
	for i := 0; i < len(args); i++ {
		a := strings.ToLower(args[i])
		if !strings.HasPrefix(a, "-") || a == "-accepteula" || a == "-nobanner" {
			continue
		}
		value := ""
		if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			value = strings.TrimSuffix(strings.ToLower(args[i]), "mb")
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1<<20 {
			return o, a
		}
		switch a {
		case "-d":
			o.bytes = n << 20
		case "-e":
			o.every = time.Duration(n) * time.Second
		case "-c":
			o.count = n
		default:
			return o, a
		}
	}
	if o.bytes == 0 {
		return o, "no -d"
	}
	return o, ""
}

// testLimit is testlimit.exe of Sysinternals with its -d: it takes memory, writes to it, and
// keeps it until it is ended.
func testLimit(ctx context.Context, s *system, args []string) int {
	o, bad := limitArgs(args)
	if bad != "" {
		return s.complain(1, "winlab: testlimit here knows -d MEGABYTES [-e SECONDS] [-c COUNT], not %s", bad)
	}
	s.printf("Leaking private bytes with touch %d MB at a time...\n", o.bytes>>20)
	var kept [][]byte
	for o.count == 0 || len(kept) < o.count {
		b := make([]byte, o.bytes)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
		s.printf("Leaked %d MB of private memory (%d MB total leaked).\n", o.bytes>>20, len(kept)*(o.bytes>>20))
		select {
		case <-time.After(o.every):
		case <-ctx.Done():
			return 1
		}
	}
	<-ctx.Done()
	return int(kept[0][0])
}
