package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/node/observed"
)

// fullProcessList are processes that every Windows runs: a list with them shows all
// processes, not only a few that somebody asked for.
func (x *nodeFacts) fullProcessList() bool { return x.runs("svchost", "lsass", "csrss", "wininit") }

// replacesKubeProxy are programs that do kube-proxy's work themselves: Antrea's
// AntreaProxy and ovn-kubernetes with its load balancers.
var replacesKubeProxy = []string{"antrea-agent", "ovnkube", "ovs-vswitchd"}

// distributions start kubelet and kube-proxy as their own children: RKE2.
var distributions = []string{"rke2", "k3s"}

func processMissing(x *nodeFacts) look {
	place, ok := x.n.Listed(observed.ListProcesses)
	if !ok {
		return lacks("No list of processes; take one with: tasklist")
	}
	want := []string{"kubelet"}
	if x.t.Proxy != "none" && !x.runs(replacesKubeProxy...) {
		want = append(want, "kube-proxy")
	}
	if x.flannel() {
		want = append(want, "flanneld")
	}
	var missing []string
	for _, name := range want {
		if !x.runs(name) {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) == 0:
		return healthy(strings.Join(want, ", ") + " run")
	case !x.fullProcessList():
		return lacks("The list of processes is not complete; take one with: tasklist")
	case x.runs(distributions...):
		return look{}
	}
	place.Text = fmt.Sprintf("%d processes, among them no %s", len(x.n.Processes), strings.Join(missing, " and no "))
	return found(strings.Join(missing, " and ")+do(missing, " does not run", " do not run")+" on the node", place)
}

func nodeNotReady(x *nodeFacts) look {
	switch {
	case x.me == nil:
		return lacks("The node is not in a list of the cluster's nodes; take one with: kubectl get nodes -o yaml")
	case x.me.Ready == "":
		return lacks("The list of nodes does not tell whether the node is Ready; take one with: kubectl get nodes -o yaml")
	case x.me.Ready == "True":
		return healthy(x.name() + " is Ready")
	}
	says := "the cluster does not have the node as Ready"
	if x.me.Reason != "" {
		says += ": " + x.me.Reason
	}
	return found(says, x.me.Place)
}

// components are the services that a node needs, as the documents name them.
var components = []string{"kubelet", "kube-proxy", "flanneld"}

func serviceStopped(x *nodeFacts) look {
	if _, ok := x.n.Listed(observed.ListServices); !ok {
		return lacks("No list of services; take one with: Get-Service")
	}
	return x.stopped(components)
}

// stopped finds services among those of some names that are registered and do not run.
func (x *nodeFacts) stopped(names []string) (out look) {
	var fine []string
	for _, name := range names {
		s := x.serviceNamed(name)
		switch {
		case s == nil:
		case s.State == "running":
			fine = append(fine, name)
		case s.State == "" || x.runs(name): // it runs in another way
		default:
			out.hits = append(out.hits, hit{says: fmt.Sprintf("the service %s is %s", s.Name, s.State), evidence: []observed.Place{s.Place},
				subject: "service " + s.Name,
				write:   fmt.Sprintf("start it with Start-Service %s; if it stops again, its log says why", s.Name)})
		}
	}
	if len(fine) > 0 {
		out.healthy = "running as services: " + strings.Join(fine, ", ")
	}
	return out
}

func notAService(x *nodeFacts) look {
	place, ok := x.n.Listed(observed.ListServices)
	if !ok || x.serviceNamed("Dhcp") == nil && x.serviceNamed("EventLog") == nil && x.serviceNamed("hns") == nil {
		return look{} // no list, or not of all services
	}
	if slices.ContainsFunc(distributions, func(d string) bool { return x.serviceNamed(d) != nil }) {
		return look{}
	}
	names := []string{"kubelet"}
	if v := x.t.Kubernetes; v != "" && older(v, 22) {
		// From 1.22 on the others may run in HostProcess containers.
		names = components
	}
	var missing []string
	for _, name := range names {
		if x.serviceNamed(name) == nil && x.runs(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return look{}
	}
	place.Text = fmt.Sprintf("%d services, among them no %s", len(x.n.Services), strings.Join(missing, " and no "))
	return found(strings.Join(missing, ", ")+do(missing, " runs and is not a service: after a restart of the machine nothing starts it",
		" run and are not services: after a restart of the machine nothing starts them"), place)
}

// do chooses the words for one or for several.
func do(list []string, one, several string) string {
	if len(list) == 1 {
		return one
	}
	return several
}

// older reports whether a version is a minor of Kubernetes 1 below one.
func older(version string, minor int) bool {
	var major, m int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &m); err != nil {
		return false
	}
	return major == 1 && m < minor
}

func macSpoofing(x *nodeFacts) look {
	var off, on []observed.Adapter
	host := strings.TrimPrefix(x.name(), "node ")
	mine := func(a observed.Adapter) bool { return strings.EqualFold(a.VM, host) }
	only := slices.ContainsFunc(x.n.Adapters, mine)
	for _, a := range x.n.Adapters {
		if a.VM == "" || only && !mine(a) {
			continue
		}
		switch strings.ToLower(a.Spoofing) {
		case "off":
			off = append(off, a)
		case "on":
			on = append(on, a)
		}
	}
	if len(off)+len(on) == 0 {
		return lacks(
			"If the node is a virtual machine, the setting is on its hypervisor; take it there with: Get-VMNetworkAdapter -VMName NODE | Format-Table VMName, Name, MacAddressSpoofing")
	}
	var out look
	for _, a := range off {
		h := hit{says: fmt.Sprintf("the adapter %q of the virtual machine %s has MAC address spoofing off", a.Name, a.VM),
			evidence: []observed.Place{a.Place}, subject: "virtual machine " + a.VM}
		failed := x.failedPodTrials()
		if len(failed) > 0 {
			// With the symptom at hand it is more than a precaution.
			h.level = "error"
			h.evidence = append(h.evidence, failed[0].Place)
		}
		if x.network() == "transparent" {
			h.level = "error"
		}
		out.hits = append(out.hits, h)
	}
	if len(off) == 0 {
		out.healthy = "MAC address spoofing is on for the virtual machine's adapters"
	}
	return out
}

// failedPodTrials are attempts of pods, other than pings, that had no answer.
func (x *nodeFacts) failedPodTrials() []observed.Trial {
	var out []observed.Trial
	for _, t := range x.n.Trials {
		if !t.OK && x.fromPod(t) && t.Address.IsValid() && t.Tool != "ping" {
			out = append(out, t)
		}
	}
	return out
}

func (x *nodeFacts) fromPod(t observed.Trial) bool {
	if t.Source.IsValid() {
		return x.inSubnet(t.Source) && !x.hasAddress(t.Source) || x.cluster.contains(t.Source) && !x.hasAddress(t.Source)
	}
	return t.From == "pod"
}

func (x *nodeFacts) fromNode(t observed.Trial) bool {
	if t.Source.IsValid() {
		return x.hasAddress(t.Source)
	}
	return t.From == "node"
}
