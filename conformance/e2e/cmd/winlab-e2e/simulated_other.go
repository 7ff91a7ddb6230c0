//go:build !linux

package main

import (
	"context"
	"runtime"
)

// bringUp refuses: nodes are network namespaces, which Linux alone has. Clusters that are
// there can be tried from everywhere.
func bringUp(context.Context, simulatedOptions) (*brought, error) {
	return nil,
		exitf(notRun,
			"a simulated cluster needs Linux, and this is %s; for a cluster that is there write --kubeconfig FILE and leave --provider out",
			runtime.GOOS)
}
