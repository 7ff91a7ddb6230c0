// Command benchtable reads the output of go test -bench -benchmem from standard
// input and prints it as a table with the budget of each figure:
//
//	go test -run '^$' -bench . -benchmem -count 3 ./sim/... | go run ./internal/dev/bench/benchtable
//
// Budgets of time are multiples of what one packet rewritten by hand takes on the machine, which
// is among the benchmarks. It exits 1 when a figure is over its budget, 2 when it cannot tell.
package main

import (
	"fmt"
	"os"

	"github.com/winlab-dev/winlab/internal/dev/bench"
)

func main() {
	rows, err := bench.Parse(os.Stdin)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("no benchmark results on standard input")
	}
	if err != nil {
		fail(err)
	}
	over, err := bench.Print(os.Stdout, rows)
	if err != nil {
		fail(err)
	}
	fmt.Printf("\n%d figures, %d over budget; each is the smallest of its runs\n", len(rows), over)
	if over > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "benchtable:", err)
	os.Exit(2)
}
