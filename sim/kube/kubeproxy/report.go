package kubeproxy

import (
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// outcome is what a sync did with an object.
type outcome string

const (
	created outcome = "created"
	updated outcome = "updated" // changed in place (ModifyLoadBalancer)
	kept    outcome = "kept"
	reused  outcome = "reused" // an object that was found in HNS
	deleted outcome = "deleted"
	skipped outcome = "skipped"
	failed  outcome = "failed"
)

// role is which object of a Service port something is about.
type role string

const (
	roleClusterIP   role = "ClusterIP"
	roleNodePort    role = "NodePort"
	roleExternalIP  role = "ExternalIP"
	roleIngress     role = "LoadBalancer"
	roleHealthCheck role = "health check"
	roleBackend     role = "backend"
	roleVIPEndpoint role = "endpoint of the cluster IP"
	roleSourceVIP   role = "source VIP"
	roleService     role = "service"
	roleNetwork     role = "network"
)

// Entry is one thing that a sync did, or did not do.
type Entry struct {
	// service is "namespace/name", port the port's name or number with its
	// protocol, "http/TCP"; both are empty for what belongs to the node.
	service, port string
	role          role
	what          outcome
	// object describes it: "10.96.0.10:80/TCP", "10.244.1.5". id is its id in HNS.
	object, id string
	// why is the reason of what was skipped, failed or differs from what the Service
	// asks for.
	why string
	// err is the answer of HNS when the call failed.
	err  error
	fact *evidence.Fact
	// frontends are those that are without a load balancer, or whose load balancer lacks
	// a backend, when it was skipped or failed; see Troubles.
	frontends []Frontend
}

// String returns one line of a log.
func (e Entry) String() string {
	var s strings.Builder
	if e.service != "" {
		fmt.Fprintf(&s, "%s:%s: ", e.service, e.port)
	}
	fmt.Fprintf(&s, "%s %s %s", e.role, e.object, e.what)
	if e.why != "" {
		fmt.Fprintf(&s, ": %s", e.why)
	}
	if e.err != nil {
		fmt.Fprintf(&s, ": %v", e.err)
	}
	return s.String()
}

// Report is what one sync did, in the order of the Services and their ports.
type Report struct {
	entries []Entry
	// services are those that there are, as "namespace/name".
	services []string
	version  kube.Version
}

func (r *Report) add(e Entry) { r.entries = append(r.entries, e) }

// entriesFor returns the entries of one Service ("namespace/name").
func (r Report) entriesFor(service string) []Entry {
	var es []Entry
	for _, e := range r.entries {
		if e.service == service {
			es = append(es, e)
		}
	}
	return es
}

// Failures returns the entries that failed.
func (r Report) Failures() []Entry {
	var es []Entry
	for _, e := range r.entries {
		if e.what == failed {
			es = append(es, e)
		}
	}
	return es
}

// changed reports whether the sync changed anything in HNS.
func (r Report) changed() bool {
	for _, e := range r.entries {
		switch e.what {
		case created, updated, deleted:
			return true
		}
	}
	return false
}

// String returns the entries, one a line.
func (r Report) String() string {
	var s strings.Builder
	for _, e := range r.entries {
		fmt.Fprintln(&s, e)
	}
	return s.String()
}
