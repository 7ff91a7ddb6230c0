package cni

import "github.com/winlab-dev/winlab/sim/trace/evidence"

var factNoPolicy = evidence.New("cni.no-network-policy", evidence.Stated,
	"flannel, win-bridge, win-overlay and HNS's plugin for NAT networks enforce no NetworkPolicy, and without a controller that does a policy has no effect.",
	"Kubernetes documentation, Network Policies, prerequisites", "flannel-io/flannel README.md",
	"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go", "containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go",
	"coreos/flannel#558")

// EnforcesNoPolicy returns the evidence that a plugin enforces no NetworkPolicy; nil
// where another part of its product may.
func EnforcesNoPolicy(n Name) *evidence.Fact {
	switch n {
	case PluginFlannel, PluginWinBridge, PluginWinOverlay, PluginNAT:
		return factNoPolicy
	}
	return nil
}
