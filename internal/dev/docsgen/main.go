// Command docsgen writes the parts of the documentation that are generated from
// the program: docs/reference/fidelity.md from the register of facts, docs/reference/verdicts.md
// from the verdicts and reason codes of traces.
//
// Run it at the root of the repository: go run ./internal/dev/docsgen. A test fails when the
// committed files are not what it would write.
//
// The command imports every package that registers facts, which nothing else in
// the module may do; see docs/decisions/rooms.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"

	// Packages that register facts. lab/cluster brings most of them; the list is
	// complete so that a change of its imports loses none.
	_ "github.com/winlab-dev/winlab/sim/dataplane/fabric"
	_ "github.com/winlab-dev/winlab/sim/dataplane/host"
	_ "github.com/winlab-dev/winlab/sim/dataplane/ovs"
	_ "github.com/winlab-dev/winlab/sim/dataplane/vfp"
	_ "github.com/winlab-dev/winlab/sim/dataplane/wire"
	_ "github.com/winlab-dev/winlab/sim/kube/cni"
	_ "github.com/winlab-dev/winlab/sim/kube/dns"
	_ "github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	_ "github.com/winlab-dev/winlab/sim/lab/cluster"
	_ "github.com/winlab-dev/winlab/sim/windows/builds"
	_ "github.com/winlab-dev/winlab/sim/windows/hcn"
	_ "github.com/winlab-dev/winlab/sim/windows/hns"
	_ "github.com/winlab-dev/winlab/sim/windows/node"
)

// pages maps a file under docs/ to its text.
func pages() map[string][]byte {
	return map[string][]byte{
		"reference/fidelity.md": fidelity(evidence.All(), labfile.Params()),
		"reference/verdicts.md": verdicts(trace.Reasons),
	}
}

func main() {
	dir := flag.String("dir", "docs", "folder to write to")
	flag.Parse()
	for name, text := range pages() {
		if err := os.WriteFile(filepath.Join(*dir, name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}
