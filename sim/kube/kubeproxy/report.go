package kubeproxy

import (
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// What a sync did with an object.
const (
	Created = "created"
	Updated = "updated" // changed in place (ModifyLoadBalancer)
	Kept    = "kept"
	Reused  = "reused" // an object that was found in HNS
	Deleted = "deleted"
	Skipped = "skipped"
	Failed  = "failed"
)

// The roles of the objects that a Service port needs.
const (
	RoleClusterIP   = "ClusterIP"
	RoleNodePort    = "NodePort"
	RoleExternalIP  = "ExternalIP"
	RoleIngress     = "LoadBalancer"
	RoleHealthCheck = "health check"
	RoleBackend     = "backend"
	RoleVIPEndpoint = "endpoint of the cluster IP"
	RoleSourceVIP   = "source VIP"
	RoleService     = "service"
)

// Entry is one thing that a sync did, or did not do.
type Entry struct {
	// Service is "namespace/name", Port the port's name or number with its
	// protocol, "http/TCP"; both are empty for what belongs to the node.
	Service, Port string
	// Role is which object of the Service this is about, What became of it.
	Role, What string
	// Object describes it: "10.96.0.10:80/TCP", "10.244.1.5". ID is its id in HNS.
	Object, ID string
	// Why is the reason of what was skipped, failed or done otherwise than the
	// Service asks.
	Why string
	// Err is the answer of HNS when the call failed.
	Err  error
	Fact *evidence.Fact
}

// String returns one line of a log.
func (e Entry) String() string {
	var s strings.Builder
	if e.Service != "" {
		fmt.Fprintf(&s, "%s:%s: ", e.Service, e.Port)
	}
	fmt.Fprintf(&s, "%s %s %s", e.Role, e.Object, e.What)
	if e.Why != "" {
		fmt.Fprintf(&s, ": %s", e.Why)
	}
	if e.Err != nil {
		fmt.Fprintf(&s, ": %v", e.Err)
	}
	return s.String()
}

// Report is what one sync did, in the order of the Services and their ports.
type Report struct {
	Entries []Entry
}

func (r *Report) add(e Entry) { r.Entries = append(r.Entries, e) }

// Of returns the entries of one Service ("namespace/name").
func (r Report) Of(service string) []Entry {
	var es []Entry
	for _, e := range r.Entries {
		if e.Service == service {
			es = append(es, e)
		}
	}
	return es
}

// Failures returns the entries that failed.
func (r Report) Failures() []Entry {
	var es []Entry
	for _, e := range r.Entries {
		if e.What == Failed {
			es = append(es, e)
		}
	}
	return es
}

// Changed reports whether the sync changed anything in HNS.
func (r Report) Changed() bool {
	for _, e := range r.Entries {
		switch e.What {
		case Created, Updated, Deleted:
			return true
		}
	}
	return false
}

// String returns the entries, one a line.
func (r Report) String() string {
	var s strings.Builder
	for _, e := range r.Entries {
		fmt.Fprintln(&s, e)
	}
	return s.String()
}
