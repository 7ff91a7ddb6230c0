package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// echo is the answer to an echo request.
type echo struct {
	from  netip.Addr
	time  time.Duration
	ttl   int
	bytes int
	// problem is what the status says instead of an answer: "Request timed out.".
	problem string
	// replied is set when a router has answered with the problem.
	replied bool
}

// pingFlags are what was asked of ping.
type pingFlags struct {
	count, size, ttl int
	wait             time.Duration
	v4, v6           bool
	target           string
}

// ping is ping.exe for IPv4. The name is resolved as the machine's resolver does; the echo
// is that of IcmpSendEcho. Its texts are those of posted output.
func ping(ctx context.Context, s *system, args []string) int {
	f, err := parsePing(args)
	if err != nil {
		return s.complain(1, "%v", err)
	}
	to, shown, err := f.resolve(ctx, s)
	if err != nil {
		return s.complain(1, "%v", err)
	}
	s.printf("\nPinging %s with %d bytes of data:\n", shown, f.size)
	var times []time.Duration
	sent, received := 0, 0
	for sent < f.count && ctx.Err() == nil {
		if sent > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second - min(time.Second, previous(times))):
			}
		}
		sent++
		e, err := s.echo(to, f.size, f.ttl, f.wait)
		switch {
		case err != nil:
			return s.complain(1, "winlab: %v", err)
		case e.problem != "" && e.replied:
			received++
			s.printf("Reply from %s: %s\n", e.from, e.problem)
		case e.problem != "":
			s.printf("%s\n", e.problem)
		default:
			received++
			times = append(times, e.time)
			s.printf("Reply from %s: bytes=%d time%s TTL=%d\n", e.from, e.bytes, milliseconds(e.time, "<1ms", "=%dms"), e.ttl)
		}
	}
	s.printf("\nPing statistics for %s:\n    Packets: Sent = %d, Received = %d, Lost = %d (%d%% loss),\n", to, sent, received, sent-received,
		100*(sent-received)/max(sent, 1))
	if len(times) > 0 {
		low, high, sum := times[0], times[0], time.Duration(0)
		for _, t := range times {
			low, high, sum = min(low, t), max(high, t), sum+t
		}
		ms := func(d time.Duration) string { return milliseconds(d, "0ms", "%dms") }
		s.printf("Approximate round trip times in milli-seconds:\n    Minimum = %s, Maximum = %s, Average = %s\n", ms(low), ms(high),
			ms(sum/time.Duration(len(times))))
	}
	if received == 0 {
		return 1
	}
	return 0
}

func previous(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return times[len(times)-1]
}

// milliseconds is a time as ping writes it: less than one has a form of its own.
func milliseconds(d time.Duration, less, form string) string {
	if d < time.Millisecond {
		return less
	}
	return fmt.Sprintf(form, d.Milliseconds())
}

// resolve returns the address and how ping shows the target: a name with its address.
func (f *pingFlags) resolve(ctx context.Context, s *system) (to netip.Addr, shown string, err error) {
	if a, err := netip.ParseAddr(f.target); err == nil {
		if a.Is6() || f.v6 {
			return a, "", errors.New("winlab: ping here has no IPv6")
		}
		return a, a.String(), nil
	}
	all, err := s.addresses(ctx, f.target)
	if err != nil { // no server could be asked, or there is no such name: ping reports both alike
		all = nil
	}
	for _, a := range all {
		if a.Is4() && !f.v6 {
			return a, fmt.Sprintf("%s [%s]", f.target, a), nil
		}
	}
	if len(all) > 0 && !f.v4 {
		return to, "", errors.New("winlab: ping here has no IPv6")
	}
	return to, "", fmt.Errorf("Ping request could not find host %s. Please check the name and try again.", f.target)
}

// parsePing reads the options that it knows; others are errors, as of the real one.
func parsePing(args []string) (*pingFlags, error) {
	f := &pingFlags{count: 4, size: 32, ttl: 128, wait: 4 * time.Second}
	numbers := map[string]struct {
		low, high int
		set       func(int)
	}{
		"n": {1, 1<<32 - 1, func(n int) { f.count = n }},
		"l": {0, 65500, func(n int) { f.size = n }},
		"i": {1, 255, func(n int) { f.ttl = n }},
		"w": {0, 1<<31 - 1, func(n int) { f.wait = time.Duration(n) * time.Millisecond }},
	}
	for i := 0; i < len(args); i++ {
		if args[i] == "" || !strings.ContainsAny(args[i][:1], "-/") {
			if f.target != "" {
				return nil, fmt.Errorf("Bad parameter %s.", args[i])
			}
			f.target = args[i]
			continue
		}
		option := strings.ToLower(args[i][1:])
		if n, ok := numbers[option]; ok {
			i++
			if i == len(args) {
				return nil, fmt.Errorf("Value must be supplied for option -%s.", option)
			}
			v, err := strconv.Atoi(args[i])
			if err != nil || v < n.low || v > n.high {
				return nil, fmt.Errorf("Bad value for option -%s, valid range is from %d to %d.", option, n.low, n.high)
			}
			n.set(v)
			continue
		}
		switch option {
		case "4":
			f.v4 = true
		case "6":
			f.v6 = true
		case "t":
			f.count = 1<<31 - 1
		case "a", "f", "j", "k", "r", "s", "v", "p", "c":
			return nil, fmt.Errorf("winlab: ping here does not know -%s", option)
		default:
			return nil, fmt.Errorf("Bad option %s.", args[i])
		}
	}
	if f.target == "" {
		return nil, errors.New("IP address must be specified.")
	}
	return f, nil
}
