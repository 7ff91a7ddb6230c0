package labfile

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Ingress is as much of an Ingress as tells a flow to it from one to something else.
// What its controller does with requests is not simulated.
type Ingress struct {
	Namespace, Name string
	// Hosts are the names of its rules and certificates, Addresses those of its status.
	Hosts     []string
	Addresses []netip.Addr
	Origin    *trace.Origin
}

// Key is "namespace/name".
func (i *Ingress) Key() string { return i.Namespace + "/" + i.Name }

// Serves reports whether requests for a name are the Ingress's: the name of a rule, or
// one label below a rule that begins with "*." (Kubernetes documentation, Ingress,
// Hostname wildcards).
func (i *Ingress) Serves(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return slices.ContainsFunc(i.Hosts, func(h string) bool {
		if zone, ok := strings.CutPrefix(h, "*"); ok {
			label, ok := strings.CutSuffix(name, zone)
			return ok && label != "" && !strings.Contains(label, ".")
		}
		return h == name
	})
}

// readIngress reads an Ingress of any API version: the fields here are the same in all.
func readIngress(doc *object, origin *trace.Origin) (*Ingress, error) {
	var o struct {
		Metadata struct{ Name, Namespace string }
		Spec     struct {
			Rules []struct{ Host string }
			TLS   []struct{ Hosts []string }
		}
		Status struct {
			LoadBalancer struct {
				Ingress []struct{ IP, Hostname string }
			}
		}
	}
	if err := doc.decode(&o); err != nil {
		return nil, err
	}
	in := &Ingress{Namespace: namespaceOr(o.Metadata.Namespace), Name: o.Metadata.Name, Origin: origin}
	add := func(host string) {
		if host = strings.ToLower(host); host != "" && !slices.Contains(in.Hosts, host) {
			in.Hosts = append(in.Hosts, host)
		}
	}
	for _, r := range o.Spec.Rules {
		add(r.Host)
	}
	for _, t := range o.Spec.TLS {
		for _, h := range t.Hosts {
			add(h)
		}
	}
	for _, l := range o.Status.LoadBalancer.Ingress {
		add(l.Hostname)
		if l.IP == "" {
			continue
		}
		a, err := netip.ParseAddr(l.IP)
		if err != nil {
			return nil, err
		}
		in.Addresses = append(in.Addresses, a)
	}
	return in, nil
}
