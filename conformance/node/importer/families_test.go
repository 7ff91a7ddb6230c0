package importer_test

import (
	"strings"
	"testing"
)

// TestDriftOfFamilies: the addresses of a pod and of a Service are compared by family, and the port
// that a load balancer sends to with the Service's target.
func TestDriftOfFamilies(t *testing.T) {
	six := strings.NewReplacer(`"IPAddress":"10.244.1.7"`, `"IPAddress":"10.244.1.7","IPv6Address":"fd00::7"`).Replace(node)
	pods := strings.NewReplacer(`"name": "a"}`, `"name": "a", "labels": {"app": "a"}}`, `"podIP": "10.244.1.7"`,
		`"podIP": "10.244.1.7", "podIPs": [{"ip": "10.244.1.7"}, {"ip": "fd00::7"}]`).Replace(objects)
	balancers := func(port string) string {
		one := func(id, vip, flags string) string {
			return `{"ID":"` + id +
				`4444444-4444-4444-4444-444444444444","HostComputeEndpoints":["22222222-2222-2222-2222-222222222222"],"FrontendVIPs":["` + vip +
				`"],"PortMappings":[{"Protocol":6,"InternalPort":` + port + `,"ExternalPort":80}],"SchemaVersion":{"Major":2,"Minor":0}` + flags + `}`
		}
		return "-- win1/lb.json --\n[" + one("4", "10.96.0.50", "") + ",\n" + one("5", "fd00:96::50", `,"Flags":2`) + "]\n"
	}
	service := `-- cluster/services.json --
{"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "web", "name": "a"}, "spec": {"clusterIP": "10.96.0.50", "clusterIPs": ["10.96.0.50", "fd00:96::50"], "selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": 8080}]}}
`
	of := func(files string) string {
		r, _, err := imported(t, files)
		if r == nil {
			t.Fatal(err)
		}
		var all []string
		for _, d := range r.Drift {
			all = append(all, d.ID+": "+d.Kubernetes+" / "+d.HNS)
		}
		return strings.Join(all, "\n")
	}
	if got := of(six + balancers("8080") + service + pods); got != "" {
		t.Errorf("nothing differs: %s", got)
	}
	got := of(six + balancers("8099") + service + pods)
	if n := strings.Count(got, "load-balancer-port: Service web/a port 80 has the target port 8080 ("); n != 2 ||
		!strings.Contains(got, " sends it to port 8099") {
		t.Errorf("%d: %s", n, got)
	}
	got = of(node + balancers("8080") + service + pods)
	if !strings.Contains(got, "load-balancer-backends: Service web/a port 80 has the backends fd00::7 (") ||
		!strings.Contains(got, "pod-without-endpoint: pod web/a has fd00::7 on win1") || strings.Count(got, "\n") != 1 {
		t.Errorf("the endpoint has no IPv6 address: %s", got)
	}
}

// TestImportRanges: a podCIDR is left out where the node's pods do not use it, and one of IPv6 is no
// range for IPv4 pods.
func TestImportRanges(t *testing.T) {
	for cidr, want := range map[string]string{`"podCIDR": "10.244.1.0/24"`: "podCIDR: 10.244.1.0/24", `"podCIDR": "10.9.1.0/24"`: "",
		`"podCIDR": "fd00:1::/64", "podCIDRs": ["fd00:1::/64", "10.244.1.0/24"]`: "podCIDR: 10.244.1.0/24", `"podCIDR": "fd00:1::/64"`: ""} {
		r, _, err := imported(t, node+strings.Replace(objects, `"podCIDR": "10.244.1.0/24"`, cidr, 1))
		if err != nil {
			t.Errorf("%s: %v", cidr, err)
			continue
		}
		if got := string(r.Lab); want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, "podCIDR:") {
			t.Errorf("%s: want %q\n%s", cidr, want, got)
		}
	}
}
