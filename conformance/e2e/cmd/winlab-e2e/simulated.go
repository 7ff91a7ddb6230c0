package main

import (
	"io"

	"github.com/winlab-dev/winlab/conformance/e2e/suite"
)

// defaultLab is the lab of a simulated cluster: one Linux node and two Windows nodes, a
// column of winlab run.
const defaultLab = "fixtures/labs/l2bridge-flannel-host-gw.yaml"

// simulatedOptions say which simulated cluster.
type simulatedOptions struct {
	file, name, kubernetes, windows, components string
	// logs is the folder for what the cluster's programs write.
	logs string
	// say gets how far it is.
	say io.Writer
}

// brought is a simulated cluster that is up.
type brought struct {
	kubeconfig string
	// internet is a machine of the lab that answers on TCP 443 and UDP 53, "" for none.
	internet string
	// outside dials from the lab's machine outside of the cluster; nil for none.
	outside suite.Dialer
	end     func() error
}
