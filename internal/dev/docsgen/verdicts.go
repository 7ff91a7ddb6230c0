package main

import (
	"bytes"
	"fmt"

	"github.com/winlab-dev/winlab/sim/trace"
)

// verdicts lists the verdicts and the reason codes.
func verdicts(reasons []trace.Explanation) []byte {
	var b bytes.Buffer
	b.WriteString(note + "# Verdicts and reason codes\n\n")
	b.WriteString("Every flow ends with one verdict and a reason code. Both sets are closed and the ids are stable.\n")
	b.WriteString("`winlab explain CODE` prints one entry of the second table.\n\n")
	b.WriteString("## Verdicts\n\n| verdict | means |\n|---|---|\n")
	for _, v := range trace.Verdicts {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.ID, cell(v.Means))
	}
	b.WriteString("\n## Reason codes\n\n| code | what happened | where to look on a node |\n|---|---|---|\n")
	for _, r := range reasons {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Code, cell(r.Means), cell(r.Look))
	}
	return b.Bytes()
}
