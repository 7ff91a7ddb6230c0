package bench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// budget is what one operation may cost. A negative number means no limit.
type budget struct {
	// name begins the name of the benchmark, "CachedFlow" for all its cases.
	name string
	// nanoseconds and allocs are per operation.
	nanoseconds float64
	allocs      int
	// what says in a few words what one operation is.
	what string
}

// budgets are the limits that the design sets, in the order of the table.
var budgets = []budget{
	{"CachedFlow", 100, 0, "one 64-byte packet of a known flow: parse, look up, rewrite"},
	{"FirstPacket", 2000, -1, "the first packet of a connection: all layers, new flows"},
	{"BlockedPacket", 2000, -1, "a packet that an ACL drops"},
	{"Tunnel", -1, -1, "one VXLAN packet from the wire: parse, open, rewrite"},
	{"Compile", -1, -1, "all rules of one port from HNS objects"},
	{"Trace", 20000, -1, "one flow with every step recorded"},
	{"Endpoints", 2e9, -1, "15,000 endpoints made, 5,000 taken away, HNS chooses the addresses"},
	{"Calls/query", 50000, -1, "one query of the HNS service over loopback"},
	{"Calls/four_clients", 50000, -1, "one enumeration, four clients at once"},
	{"Calls/create_and_delete", 150000, -1, "a namespace made, deleted and closed: three calls"},
	{"CheckThousand", 5e9, -1, "a thousand manifests held against the support matrix"},
	{"LoadLedger", -1, -1, "the claims as every command reads them"},
}

// budgetOf finds the budget of a benchmark, or the zero budget.
func budgetOf(name string) budget {
	for _, b := range budgets {
		if strings.HasPrefix(name, b.name) {
			return b
		}
	}
	return budget{nanoseconds: -1, allocs: -1}
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

var line = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

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

// Print writes the rows as a table and returns how many are over their budget.
func Print(w io.Writer, rows []Row) (over int) {
	fmt.Fprintf(w, "%-28s %12s %12s %8s %8s  %s\n", "benchmark", "time", "budget", "B/op", "allocs", "")
	for _, r := range rows {
		b := budgetOf(r.name)
		budget, note := "-", ""
		if b.nanoseconds >= 0 {
			budget = duration(b.nanoseconds)
			note = "within"
			if r.nanoseconds > b.nanoseconds {
				note = "over"
			}
		}
		allocs, bytes := "-", "-"
		if r.allocs != math.MaxInt {
			allocs, bytes = strconv.Itoa(r.allocs), strconv.Itoa(r.bytes)
			if b.allocs >= 0 && r.allocs > b.allocs {
				note = "over (allocates)"
			}
		}
		if strings.HasPrefix(note, "over") {
			over++
		}
		if r.bytesPerSecond > 0 {
			note = strings.TrimSpace(fmt.Sprintf("%s, %.0f MB/s", note, r.bytesPerSecond/1e6))
		}
		fmt.Fprintf(w, "%-28s %12s %12s %8s %8s  %s\n", r.name, duration(r.nanoseconds), budget, bytes, allocs, note)
	}
	return over
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
