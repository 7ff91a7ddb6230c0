package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// Step is one thing that is read.
type Step struct {
	// Name is its short name, What what it reads, in words.
	Name, What string
	// How are the commands.
	How []string
	run func(context.Context, *taking) error
}

// Options say how a bundle is taken.
type Options struct {
	Client Client
	// Timeout is how long a step may take; 0 is a minute.
	Timeout time.Duration
	// Nodes, when set, says what is done on Windows nodes.
	Nodes *Nodes
	// Progress, when set, gets each step when it is done.
	Progress func(bundle.Step)
	// Waits, when set, gets a line before something that may take minutes.
	Waits func(text string)
}

// configMaps are those that say how the network is made. kube-system/kube-proxy, kubeadm-config
// and kubelet-config are kubeadm's (kubernetes/kubernetes cmd/kubeadm/app/constants); the others
// those of the plugins: flannel-io/flannel Documentation/kube-flannel.yml, kubernetes-sigs/
// sig-windows-tools hostprocess/flannel, projectcalico/calico manifests, tigera/operator
// pkg/render/node.go (calico-system/cni-config), aws/amazon-vpc-cni-k8s config, antrea-io/antrea
// build/yamls (without the suffix that its older manifests have), Azure/ip-masq-agent-v2. One
// that a cluster lacks is not a failure.
var configMaps = []struct {
	namespace string
	names     []string
}{
	{"kube-system", []string{
		"kube-proxy", "kube-proxy-windows", "kubeadm-config", "kubelet-config", "coredns", "kube-flannel-cfg", "kube-flannel-windows-cfg",
		"calico-config", "calico-windows-config",
		"amazon-vpc-cni", "antrea-config", "antrea-windows-config", "azure-ip-masq-agent-config", "azure-ip-masq-agent-config-reconciled",
	}},
	{"kube-flannel", []string{"kube-flannel-cfg", "kube-flannel-windows-cfg"}},
	{"calico-system", []string{"cni-config", "cni-config-windows", "calico-windows-config"}},
}

// optional are resources that a cluster may lack. first says that a cluster without the first of
// them lacks all.
type optional struct {
	name, what, folder, of, none string
	resources                    []string
	first                        bool
}

// optionals are the objects of Calico that say which addresses pods have and how they are reached
// (projectcalico/calico manifests/crds.yaml, tigera/operator api/v1), and policies for whole clusters
// (kubernetes-sigs/network-policy-api config/crd). A cluster without IP pools has no Calico whose data
// is in Kubernetes.
var optionals = []optional{
	{name: "calico", what: "IP pools, blocks of addresses and settings of Calico, where it is there", folder: "calico", of: " of Calico",
		none: "the cluster has no objects of Calico", first: true,
		resources: []string{"ippools.crd.projectcalico.org", "blockaffinities.crd.projectcalico.org", "felixconfigurations.crd.projectcalico.org",
			"installations.operator.tigera.io"}},
	{name: "otherpolicies",
		what:   "AdminNetworkPolicies and their like, policies of Calico's and Antrea's own kinds, where the cluster has such kinds",
		folder: "otherpolicies", none: "the cluster has no kinds of policies beside NetworkPolicy",
		resources: []string{"networkpolicies.crd.projectcalico.org", "globalnetworkpolicies.crd.projectcalico.org",
			"networkpolicies.crd.antrea.io", "clusternetworkpolicies.crd.antrea.io", "adminnetworkpolicies.policy.networking.k8s.io",
			"baselineadminnetworkpolicies.policy.networking.k8s.io", "clusternetworkpolicies.policy.networking.k8s.io"}},
}

// kind is a kind of objects of which all are read.
type kind struct{ resource, what string }

// kinds are in the order in which a cluster is understood without the ones behind them. Endpoints
// and pods are read right after each other: what lies between them is in no picture of a cluster.
var kinds = []kind{
	{"nodes", "nodes: addresses, pod ranges, builds of Windows, versions of the kubelet, labels and taints"},
	{"namespaces", "namespaces with their labels, which policies choose by"},
	{"services", "Services"},
	{"endpointslices", "EndpointSlices"},
	{"pods", "pods: nodes, addresses, ports, labels, states"},
	{"networkpolicies", "NetworkPolicies"},
	{"runtimeclasses", "RuntimeClasses"},
	{"events", "events: what failed lately, and why"},
}

// cluster-wide kinds have no namespace.
func (k kind) args() []string {
	args := []string{"get", k.resource}
	switch k.resource {
	case "nodes", "namespaces", "runtimeclasses":
	default:
		args = append(args, "--all-namespaces")
	}
	return append(args, "-o", "json")
}

// Steps are what is read of a cluster, in that order.
func Steps(o Options) []Step {
	steps := []Step{{Name: "version", What: "the version of the API server", How: []string{o.Client.Shown("get", "--raw", "/version")},
		run: version}}
	for _, k := range kinds {
		steps = append(steps, Step{Name: k.resource, What: k.what, How: []string{o.Client.Shown(k.args()...)}, run: k.read})
	}
	var how []string
	for _, c := range configMaps {
		how = append(how, o.Client.Shown(configMapArgs(c.namespace, c.names)...))
	}
	for _, x := range optionals {
		var how []string
		for _, r := range x.resources {
			how = append(how, o.Client.Shown("get", r, "-o", "json"))
		}
		steps = append(steps, Step{Name: x.name, What: x.what, How: how, run: x.read})
	}
	return append(steps, Step{Name: "configmaps", What: "ConfigMaps of network plugins, kube-proxy, kubelet and CoreDNS, by name", How: how,
		run: configuration})
}

// configMapArgs ask for all of a namespace at once: programs that log in take seconds.
func configMapArgs(namespace string, names []string) []string {
	return append(append([]string{"get", "configmaps", "--namespace", namespace}, names...), "--ignore-not-found", "-o", "json")
}

// taking is a step while it is done: its files go into the bundle when it has ended.
type taking struct {
	kubectl Kubectl
	client  Client
	files   []taken
}

type taken struct {
	file bundle.File
	data []byte
}

// absent is an error that says that something is not there, which is not a failure.
type absent struct{ why string }

func (a absent) Error() string { return a.why }

// Take reads a cluster. The error is about the bundle or the context; what fails is in the
// bundle's steps.
func Take(ctx context.Context, w *bundle.Writer, o Options) error {
	kubectl, err := o.Client.Find()
	if err != nil {
		return err
	}
	return TakeBy(ctx, w, kubectl, o)
}

// TakeBy is [Take] with a kubectl that is given.
func TakeBy(ctx context.Context, w *bundle.Writer, kubectl Kubectl, o Options) error {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	var unreachable error
	var nodes []byte
	for _, s := range Steps(o) {
		said := bundle.Step{Name: s.Name, What: s.What}
		t := &taking{kubectl: kubectl, client: o.Client}
		err := unreachable
		if err == nil {
			err = s.timed(ctx, t, o.Timeout)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.Name == "version" && err != nil && !answered(err) {
			// Do not wait again for each of the other requests.
			unreachable = fmt.Errorf("not tried: the API server did not answer the first question: %w", err)
		}
		var a absent
		if errors.As(err, &a) {
			said.Absent = a.why
		} else if err != nil {
			said.Error = err.Error()
		}
		for _, f := range t.files {
			if err := w.Add(f.file, f.data); err != nil {
				return err
			}
			said.Files = append(said.Files, f.file.Path)
		}
		if s.Name == "nodes" && len(t.files) > 0 {
			nodes = t.files[0].data
		}
		w.Step(said)
		o.tell(said)
	}
	if o.Nodes == nil {
		return nil
	}
	return o.onNodes(ctx, w, kubectl, nodes)
}

func (o *Options) tell(s bundle.Step) {
	if o.Progress != nil {
		o.Progress(s)
	}
}

// timed does a step within a time.
func (s *Step) timed(ctx context.Context, t *taking, timeout time.Duration) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := s.run(within, t)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer after %s", timeout)
	}
	return err
}

// add keeps objects without their secrets.
func (t *taking) add(name, what string, data []byte, args []string) error {
	clean, redacted, err := Redact(data)
	if err != nil {
		return err
	}
	t.files = append(t.files, taken{bundle.File{Path: "cluster/" + name + ".json", What: what, From: "kubectl " + strings.Join(args, " "),
		Redacted: redacted}, clean})
	return nil
}

func version(ctx context.Context, t *taking) error {
	args := []string{"get", "--raw", "/version"}
	data, err := t.kubectl.output(ctx, args...)
	if err != nil {
		return err
	}
	return t.add("version", "the version of the API server", data, args)
}

func (k kind) read(ctx context.Context, t *taking) error {
	data, err := t.kubectl.output(ctx, k.args()...)
	if err != nil {
		return fmt.Errorf("%s: %w", t.client.Shown(k.args()...), err)
	}
	return t.add(k.resource, k.resource, data, k.args())
}

// read takes what of the resources the cluster has.
func (o optional) read(ctx context.Context, t *taking) error {
	for i, r := range o.resources {
		args := []string{"get", r, "-o", "json"}
		data, err := t.kubectl.output(ctx, args...)
		switch {
		case err != nil && strings.Contains(err.Error(), "doesn't have a resource type") && i == 0 && o.first:
			return absent{o.none}
		case err != nil && strings.Contains(err.Error(), "doesn't have a resource type"):
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", t.client.Shown(args...), err)
		}
		name, group, _ := strings.Cut(r, ".")
		file := o.folder + "/" + name
		if !o.first {
			file += "." + group // several groups have kinds of one name
		}
		if err := t.add(file, name+o.of, data, args); err != nil {
			return err
		}
	}
	if len(t.files) == 0 {
		return absent{o.none}
	}
	return nil
}

func configuration(ctx context.Context, t *taking) error {
	var errs []error
	for _, c := range configMaps {
		args := configMapArgs(c.namespace, c.names)
		data, err := t.kubectl.output(ctx, args...)
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		// One that may not be read does not keep the others back.
		if len(bytes.TrimSpace(data)) > 0 {
			err = errors.Join(err, t.add("configmaps/"+c.namespace, "ConfigMaps of "+c.namespace, data, args))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("of %s: %w", c.namespace, err))
		}
	}
	if len(t.files) == 0 && len(errs) == 0 {
		return absent{"none of the ConfigMaps is there"}
	}
	return errors.Join(errs...)
}
