package components

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// NetConf is the network that pods of a node are put on.
type NetConf struct {
	// Program is win-bridge or win-overlay.
	Program string
	// Config is its configuration, without what the runtime adds.
	Config map[string]any
	// Capabilities are those that the runtime serves in runtimeConfig.
	Capabilities map[string]bool
	// APIVersion is 1 (HNS) or 2 (HCN): it says what a sandbox is to the plugin.
	APIVersion int
}

// DNS is what the kubelet wants a pod to have. A plugin gets it with the capability
// dns.
type DNS struct{ Servers, Searches, Options []string }

// Attached is a pod that has its endpoint.
type Attached struct {
	// container is the sandbox, Endpoint the id of the HNS endpoint.
	container, Endpoint string
	// Addresses and Gateway are what the plugin has answered.
	Addresses []netip.Prefix
	Gateway   netip.Addr
	// Refusals are the attempts that failed before.
	Refusals []error

	// added is the call that made it, end removes the sandbox.
	added cniCall
	end   func() error
}

// attempts is how often a pod's sandbox is made. The kubelet never gives up.
const attempts = 4

// AttachPod does what kubelet and container runtime do for a new pod: a sandbox, and
// CNI ADD for it. When the plugin refuses, DEL, and once more with a new sandbox.
func (n *Node) AttachPod(ctx context.Context, plugins *pinned.Binaries, c NetConf, pod *kube.Pod, dns DNS) (*Attached, error) {
	a := &Attached{}
	for try := range attempts {
		out, err := n.addOnce(ctx, plugins, c, pod, dns, try, a)
		if err == nil {
			return a, a.read(out)
		}
		a.Refusals = append(a.Refusals, err)
		var refusal *cniError
		if !errors.As(err, &refusal) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("refused %d times, at last: %w", attempts, a.Refusals[attempts-1])
}

func (n *Node) addOnce(ctx context.Context, plugins *pinned.Binaries, c NetConf, pod *kube.Pod, dns DNS, try int, a *Attached) ([]byte,
	error) {
	// A runtime invents the id. Names of endpoints begin with it, so this one is
	// readable in traces.
	a.container = pod.Namespace + "." + pod.Name
	if try > 0 {
		a.container = fmt.Sprintf("%s.%d", a.container, try+1)
	}
	netns, end, err := n.sandbox(c, a.container)
	if err != nil {
		return nil, err
	}
	text, err := n.runtimeConfig(c, pod, dns)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	call := cniCall{Plugins: plugins, Plugin: c.Program, Command: "ADD", ContainerID: a.container, NetNS: netns, IfName: "eth0",
		Args: args(pod), Config: text}
	out, err := n.callCNI(ctx, call)
	if err != nil {
		call.Command = "DEL"
		_, delErr := n.callCNI(ctx, call)
		var refusal *cniError
		if errors.As(delErr, &refusal) {
			delErr = nil // the runtime logs it
		}
		return nil, errors.Join(err, delErr, end())
	}
	n.config.HNS.With(func(s *hns.Service) {
		for _, e := range s.ListEndpoints(nil) {
			if strings.HasPrefix(e.Name, a.container+"_") {
				a.Endpoint = e.ID
			}
		}
	})
	if a.Endpoint == "" {
		return nil, fmt.Errorf("%s completed ADD, but there is no endpoint of container %s", c.Program, a.container)
	}
	a.added, a.end = call, end
	return out, nil
}

// DetachPod does what the container runtime does for a pod that goes: CNI DEL, and the
// sandbox is removed. A refusal of the plugin is in refusal; the runtime logs it and tries
// again for as long as the pod's sandbox is there.
func (n *Node) DetachPod(ctx context.Context, a *Attached) (refusal, err error) {
	call := a.added
	call.Command = "DEL"
	for range attempts {
		if _, err = n.callCNI(ctx, call); err == nil || !Refused(err) {
			break
		}
	}
	if Refused(err) {
		refusal, err = err, nil
	}
	return refusal, errors.Join(err, a.end())
}

// sandbox makes what a pod's sandbox is to the plugin: a namespace of HCN, as
// containerd makes it before the sandbox's container, or a container of Docker, which
// HNS v1 attaches itself. "none" is dockershim's and cri-dockerd's name for a sandbox
// that shares no other's network. end removes it.
func (n *Node) sandbox(c NetConf, container string) (netns string, end func() error, err error) {
	hnsOf := n.config.HNS
	if c.APIVersion == 1 {
		hnsOf.AddComputeSystem(container)
		return "none", func() error { hnsOf.RemoveComputeSystem(container); return nil }, nil
	}
	hnsOf.With(func(s *hns.Service) {
		var ns *hns.Namespace
		if ns, err = s.CreateNamespace(hns.Namespace{}); err == nil {
			netns = ns.ID
		}
	})
	return netns, func() (err error) {
		hnsOf.With(func(s *hns.Service) { err = s.DeleteNamespace(netns) })
		return err
	}, err
}

// args is CNI_ARGS. IP asks host-local for one address. A pod of an API server has a UID,
// which containerd hands on (internal/cri/server/sandbox_run.go, toCNILabels).
func args(pod *kube.Pod) string {
	text := ipArg(pod.Address) + ";K8S_POD_NAMESPACE=" + pod.Namespace + ";K8S_POD_NAME=" + pod.Name
	if pod.UID != "" {
		text += ";K8S_POD_UID=" + pod.UID
	}
	return text
}

func ipArg(a netip.Addr) string {
	if !a.IsValid() {
		return "IgnoreUnknown=1"
	}
	return "IgnoreUnknown=1;IP=" + a.String()
}

// runtimeConfig is the configuration with what the runtime adds for a pod.
func (n *Node) runtimeConfig(c NetConf, pod *kube.Pod, dns DNS) ([]byte, error) {
	conf, runtime := maps.Clone(c.Config), map[string]any{}
	if c.Capabilities["portMappings"] && len(pod.HostPorts) > 0 {
		var list []any
		for _, hp := range pod.HostPorts {
			ip := ""
			if hp.HostIP.IsValid() {
				ip = hp.HostIP.String()
			}
			list = append(list, map[string]any{"hostPort": hp.HostPort, "containerPort": hp.Container,
				"protocol": strings.ToLower(hp.Proto.String()), "hostIP": ip})
		}
		runtime["portMappings"] = list
	}
	if c.Capabilities["dns"] && len(dns.Servers) > 0 {
		runtime["dns"] = map[string]any{"servers": dns.Servers, "searches": dns.Searches, "options": dns.Options}
	}
	if len(runtime) > 0 {
		conf["runtimeConfig"] = runtime
	}
	if ipam, ok := conf["ipam"].(map[string]any); ok {
		// Nodes that share a host share its drive.
		ipam = maps.Clone(ipam)
		ipam["dataDir"] = wine.Path(filepath.Join(n.dir, "networks"))
		conf["ipam"] = ipam
	}
	return json.Marshal(conf)
}

// ReserveAddress takes an address from host-local that no pod gets, as start
// scripts do for kube-proxy's source VIP (microsoft/SDN Kubernetes/windows
// helper.psm1 Get-SourceVip). A valid want asks for that one.
func (n *Node) ReserveAddress(ctx context.Context, plugins *pinned.Binaries, c NetConf, name string, want netip.Addr) (netip.Addr, error) {
	text, err := n.runtimeConfig(c, &kube.Pod{}, DNS{})
	if err != nil {
		return netip.Addr{}, err
	}
	out, err := n.callCNI(ctx, cniCall{Plugins: plugins, Plugin: "host-local", Command: "ADD", ContainerID: name, NetNS: "none", IfName: name,
		Args: ipArg(want), Config: text})
	if err != nil {
		return netip.Addr{}, err
	}
	var a Attached
	if err := a.read(out); err != nil {
		return netip.Addr{}, err
	}
	return a.Addresses[0].Addr(), nil
}

// read reads a CNI result of version 0.1.0 or later.
func (a *Attached) read(out []byte) error {
	type ip struct {
		Address netip.Prefix
		IP      netip.Prefix
		Gateway netip.Addr
	}
	var r struct {
		IPs      []ip
		IP4, IP6 ip
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return fmt.Errorf("the result of ADD: %w: %s", err, out)
	}
	for _, x := range append(r.IPs, r.IP4, r.IP6) {
		if x.IP.IsValid() {
			x.Address = x.IP
		}
		if !x.Address.IsValid() {
			continue
		}
		a.Addresses = append(a.Addresses, x.Address)
		if !a.Gateway.IsValid() {
			a.Gateway = x.Gateway
		}
	}
	if len(a.Addresses) == 0 {
		return fmt.Errorf("the result of ADD has no address: %s", out)
	}
	return nil
}
