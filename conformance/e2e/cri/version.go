package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A node shows these as containerRuntimeVersion: containerd://2.1.0+winlab.
//
// The name is containerd's because programs decide by it what a node can do: the Windows
// suite of Kubernetes skips tests unless it is containerd of 1.7 or later
// (test/e2e/windows/utils.go, skipUnlessContainerdOneSevenOrGreater), and it is
// containerd's behaviour that this runtime follows. The build metadata says that it is
// not containerd; by semantic versioning it does not count when versions are compared.
const (
	runtimeName    = "containerd"
	runtimeVersion = "2.1.0+winlab"
)

// Version says what the runtime is.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version:           "0.1.0", // of the kubelet's API, fixed since ever
		RuntimeName:       runtimeName,
		RuntimeVersion:    runtimeVersion,
		RuntimeApiVersion: "v1",
	}, nil
}

// handlers are the names that a RuntimeClass may have as its handler: containerd's default
// ones. There is none for Hyper-V.
func (r *Runtime) handlers() []string {
	if r.o.OS == "windows" {
		return []string{"", "runhcs-wcow-process"}
	}
	return []string{"", "runc"}
}

// Status says whether pods can be started.
func (r *Runtime) Status(_ context.Context, q *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	network := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: true}
	if err := r.o.Network(); err != nil {
		network.Status, network.Reason, network.Message = false, "NetworkPluginNotReady", "Network plugin returns error: "+err.Error()
	}
	a := &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true},
			network,
		}},
		Features: &runtimeapi.RuntimeFeatures{},
	}
	for _, h := range r.handlers() {
		a.RuntimeHandlers = append(a.RuntimeHandlers, &runtimeapi.RuntimeHandler{Name: h, Features: &runtimeapi.RuntimeHandlerFeatures{}})
	}
	if q.Verbose {
		r.mu.Lock()
		a.Info = info(map[string]any{"runtime": "winlab", "os": r.o.OS, "podCIDR": r.podCIDR})
		r.mu.Unlock()
	}
	return a, nil
}

// UpdateRuntimeConfig takes the node's pod range, which is of no use here: the network
// plugin of the lab has it from its own configuration.
func (r *Runtime) UpdateRuntimeConfig(_ context.Context, q *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse,
	error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.podCIDR = q.GetRuntimeConfig().GetNetworkConfig().GetPodCidr()
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}

// RuntimeConfig says how cgroups are managed: not at all, which the kubelet calls cgroupfs.
func (r *Runtime) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	a := &runtimeapi.RuntimeConfigResponse{}
	if r.o.OS == "linux" {
		a.Linux = &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}
	}
	return a, nil
}
