package bench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// measure is the benchmark that says how fast the machine is at this moment: one packet
// rewritten by hand (internal/dev/bench/plain). Every budget of time is a multiple of it.
const measure = "PlainPacket"

// budget is what one operation may cost. A negative number means no limit.
type budget struct {
	// name begins the name of the benchmark, "CachedFlow" for all its cases.
	name string
	// times is the limit, in packets rewritten by hand: about twice what was measured when it was
	// set. Machines that are busy measure one figure or the other too long, and a change of the
	// code that doubles one is seen.
	times float64
	// goal is what is to be reached on a quiet machine, 0 for nothing.
	goal time.Duration
	// allocs are per operation.
	allocs int
	// what says in a few words what one operation is, not what it leaves out.
	what, not string
}

// budgets are the limits, in the order of the table.
var budgets = []budget{
	{measure, -1, 0, 0, "the measure: one packet of 2,000 flows rewritten by hand", "no layers, no hops, no output"},
	{"CachedFlow", 6, 88 * time.Nanosecond, 0, "one 64-byte packet of a known flow: parse, look up, rewrite",
		"one port: no hops, no stack, no output"},
	{"FirstPacket", 100, 2 * time.Microsecond, -1, "the first packet of a connection: all layers of one port, new flows",
		"no hops, no stack, no output"},
	{"BlockedPacket", 40, 2 * time.Microsecond, -1, "a packet that an ACL drops", "one port"},
	{"Tunnel", 14, 0, -1, "one VXLAN packet from the wire: parse, open, rewrite", "one port"},
	{"Compile", 320_000, 0, -1, "all rules of one port from HNS objects", "no packet"},
	{"TracePort", 520, 0, -1, "one packet with every step of one port recorded", "no hops, no text"},
	{"TraceLab", 1400, 20 * time.Microsecond, -1, "one flow there and back over two machines, every step recorded",
		"no text, the lab is built"},
	{"TraceLarge/10-nodes-10000-Services", 4500, 50 * time.Microsecond, -1,
		"such a flow in a larger lab; to a Service it has a path for each of three backends", "no text, the lab is built"},
	{"TraceLarge", 4500, 20 * time.Microsecond, -1, "such a flow in a larger lab; to a Service it has a path for each of three backends",
		"no text, the lab is built"},
	{"TraceAll", 1200, 18750 * time.Nanosecond, -1, "one pair of 400 pods, traced there and back; all 160,000 in 3 s",
		"no text; memory is used again, and the processors of the machine at once"},
	{"Connection", 4000, 0, -1, "a connection of the live network: frames there and back", "no sockets"},
	{"ReplayMillion/every_machine", 1e8, 0, -1, "10,000 packets, each of which visits each machine", "no file is read or written"},
	{"ReplayMillion", 1e8, 600 * time.Millisecond, -1, "a million packets over all hops of their paths",
		"no file is read or written; output is made and thrown away"},
	{"ReplayMillionOnePort", 8e6, 150 * time.Millisecond, -1, "a million packets through one port of two layers",
		"read from memory; no hops, nothing is written"},
	{"Endpoints", 8e6, 0, -1, "15,000 endpoints made, 5,000 taken away, HNS chooses the addresses", "no rules, no packet"},
	{"Calls/query", 1000, 6700 * time.Nanosecond, -1, "one query of the HNS service over its Unix socket",
		"no Wine, client and service in one process; waiting counts"},
	{"Calls/four_clients", 1500, 0, -1, "one enumeration, four clients at once", "no Wine; waiting counts"},
	{"Calls/create_and_delete", 3000, 0, -1, "a namespace made, deleted and closed: three calls", "no Wine; waiting counts"},
	{"CallsWine", 5000, 100 * time.Microsecond, -1, "one enumeration by a Windows program under Wine over loopback",
		"the program runs already; waiting counts"},
	{"ReadMillion", 8e6, 0, -1, "a million packets read from a capture in memory", "no packet is parsed"},
	{"Write", 16, 0, -1, "one frame written as pcapng", "no file"},
	{"Load", 3, 0, -1, "one packet parsed", "no rewrite"},
	{"CheckThousand/one", 6e7, 0, -1, "a thousand manifests held against the support matrix in one setting", "no output"},
	{"CheckThousand/all", 2e8, 0, -1, "the same in all settings", "no output"},
	{"LoadLedger", 2e6, 0, -1, "the claims as every command reads them", "not linted"},
	{"Report", 6e7, 0, -1, "the HTML report of 2,000 traces", "no lab runs"},
}

// budgetOf finds the budget of a benchmark, the one with the longest name that fits, or one
// without limits.
func budgetOf(name string) budget {
	found := budget{times: -1, allocs: -1}
	for _, b := range budgets {
		if strings.HasPrefix(name, b.name) && len(b.name) > len(found.name) {
			found = b
		}
	}
	return found
}

// Row is one benchmark with the smallest of its measurements: what disturbs a
// measurement only ever makes it longer.
type Row struct {
	name        string
	runs        int
	nanoseconds float64
	bytes       int // allocated per operation
	allocs      int
	// bytesPerSecond is 0 when the benchmark does not say.
	bytesPerSecond float64
}

var line = lazyregexp.New(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// Parse reads the output of go test -bench -benchmem and joins the runs of each
// benchmark. Lines that are not results are left out.
func Parse(r io.Reader) ([]Row, error) {
	var rows []Row
	at := map[string]int{}
	in := bufio.NewScanner(r)
	for in.Scan() {
		m := line.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		i, known := at[m[1]]
		if !known {
			i = len(rows)
			at[m[1]] = i
			rows = append(rows, Row{name: m[1], nanoseconds: math.Inf(1), bytes: math.MaxInt, allocs: math.MaxInt})
		}
		row := &rows[i]
		row.runs++
		fields := strings.Fields(m[2])
		for f := 0; f+1 < len(fields); f += 2 {
			v, err := strconv.ParseFloat(fields[f], 64)
			if err != nil {
				return nil, fmt.Errorf("benchmark %s: %q is not a number", m[1], fields[f])
			}
			switch fields[f+1] {
			case "ns/op":
				row.nanoseconds = min(row.nanoseconds, v)
			case "B/op":
				row.bytes = min(row.bytes, int(v))
			case "allocs/op":
				row.allocs = min(row.allocs, int(v))
			case "MB/s":
				row.bytesPerSecond = max(row.bytesPerSecond, v*1e6)
			}
		}
	}
	return rows, in.Err()
}

// Print writes the rows as a table and returns how many are over their budget. It is an error
// when the measure of the machine is not among the rows.
func Print(w io.Writer, rows []Row) (over int, err error) {
	unit := 0.0
	for _, r := range rows {
		if r.name == measure {
			unit = r.nanoseconds
		}
	}
	if unit <= 0 {
		return 0, fmt.Errorf("there is no benchmark %s, of which budgets are multiples", measure)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "benchmark\ttime\tpackets by hand\tbudget\tgoal\tB/op\tallocs\t\tone is\twithout")
	for _, r := range rows {
		b := budgetOf(r.name)
		var notes []string
		allocs, bytes := "-", "-"
		if r.allocs != math.MaxInt {
			allocs, bytes = strconv.Itoa(r.allocs), strconv.Itoa(r.bytes)
			if b.allocs >= 0 && r.allocs > b.allocs {
				notes = append(notes, "OVER BUDGET: allocates")
			}
		}
		times := r.nanoseconds / unit
		switch {
		case b.times >= 0 && times > b.times:
			notes = append(notes, "OVER BUDGET")
		case b.goal > 0 && r.nanoseconds > float64(b.goal):
			notes = append(notes, "short of the goal")
		case b.goal > 0:
			notes = append(notes, "reached")
		}
		if slices.ContainsFunc(notes, func(s string) bool { return strings.HasPrefix(s, "OVER") }) {
			over++
		}
		if r.bytesPerSecond > 0 {
			notes = append(notes, fmt.Sprintf("%.0f MB/s", r.bytesPerSecond/1e6))
		}
		goal := "-"
		if b.goal > 0 {
			goal = duration(float64(b.goal))
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.name, duration(r.nanoseconds), multiple(times), multiple(b.times), goal,
			bytes, allocs, strings.Join(notes, ", "), b.what, b.not)
	}
	return over, out.Flush()
}

// multiple writes how many packets by hand something costs.
func multiple(n float64) string {
	switch {
	case n < 0:
		return "-"
	case n < 10:
		return fmt.Sprintf("%.1f×", n)
	case n < 1e4:
		return fmt.Sprintf("%.0f×", n)
	}
	return fmt.Sprintf("%.2g×", n)
}

// duration writes nanoseconds with three figures.
func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.3g s", ns/1e9)
}
