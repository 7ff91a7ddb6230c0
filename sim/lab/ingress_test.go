package lab

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A flow to an Ingress is unknown and names it: by its address, by its name with and
// without an address, and where its controller is a Service of the lab only as far as
// that gets.
func TestFlowsToAnIngressAreUnknown(t *testing.T) {
	t.Parallel()
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(t.TempDir(), fixtures) // as deep as the folder of write
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "lab.yaml", head+`  base: `+rel+`/labs/l2bridge-flannel-host-gw.yaml
  manifests: [in.yaml, `+fixtures+`/manifests/win-webserver.yaml]
  dns: {records: {shop.example: 198.51.100.77, a.wild.example: 10.96.0.88, a.b.wild.example: 10.96.0.88, pay.example: 192.168.1.50, gone.wild.example: 203.0.113.200}}
`, "in.yaml", `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  tls: [{hosts: [pay.example]}]
  rules: [{host: shop.example}, {host: "*.wild.example"}]
status: {loadBalancer: {ingress: [{ip: 198.51.100.77}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: other}
spec: {rules: [{host: other.example}]}
---
apiVersion: v1
kind: Service
metadata: {name: controller}
spec: {type: LoadBalancer, clusterIP: 10.96.0.88, selector: {app: win-webserver}, ports: [{port: 80}]}
`)
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c := built(t, f)
	for _, w := range []struct{ to, verdict, says string }{
		{"198.51.100.77:80", "unknown", "198.51.100.77 is the address of Ingress default/shop (DIR/in.yaml:1): nothing in this lab has it"},
		{"name/shop.example:80", "unknown", "is the address of Ingress default/shop"},
		{"name/other.example:80", "unknown",
			"other.example is a name of Ingress default/other (DIR/in.yaml:9), but the lab does not say which address it has"},
		{"name/a.wild.example:80", "unknown", "Delivered; "},
		{"name/a.wild.example:80", "unknown", "What the controller of Ingress default/shop"},
		{"name/a.b.wild.example:80", "delivered", "Delivered"}, // a wildcard is for one label
		{"svc/controller:80", "delivered", "Delivered"},
		// A packet that is lost on the way is lost.
		{"name/pay.example:4444", "dropped", "no route to 10.244.1.4"},
		{"name/gone.wild.example:80", "unknown", "203.0.113.200 is the address of Ingress default/shop"},
	} {
		tr, err := c.Trace(t.Context(), Request{From: "pod/client", To: w.to})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.ReplaceAll(tr.Summary, filepath.Dir(path), "DIR")
		if fmt.Sprint(tr.Verdict) != w.verdict || !strings.Contains(said, w.says) {
			t.Errorf("%s: %s %s\n%s\nwant %s, %q", w.to, tr.Verdict, tr.Reason, said, w.verdict, w.says)
		}
	}
	o, err := c.Run(t.Context(), Flow{From: "pod/client", To: "name/other.example", Resolve: "Resolve-DnsName"})
	if err != nil || fmt.Sprint(o.Verdict) != "unknown" || !strings.Contains(o.Summary, "default/other") {
		t.Errorf("look-up: %s %s %v", o.Verdict, o.Summary, err)
	}
}
