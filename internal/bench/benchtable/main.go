// Command benchtable reads the output of go test -bench -benchmem from standard
// input and prints it as a table with the budget of each figure:
//
//	go test -run '^$' -bench . -benchmem -count 3 ./sim/... | go run ./internal/bench/benchtable
//
// It exits 0 also when a figure is over its budget: a busy machine is not an error.
package main

import (
	"fmt"
	"os"

	"github.com/winlab-dev/winlab/internal/bench"
)

func main() {
	rows, err := bench.Parse(os.Stdin)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("no benchmark results on standard input")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
	over := bench.Print(os.Stdout, rows)
	fmt.Printf("\n%d figures, %d over budget; each is the smallest of its runs\n", len(rows), over)
}
