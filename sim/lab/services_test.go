package lab_test

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/trace"
)

// namedPorts is a Service that names its target port, and a Deployment whose containers
// have it.
const namedPorts = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, clusterIP: 10.96.0.77, selector: {app: web}, ports: [{port: 80, targetPort: http, nodePort: 30777}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]
`

// A target port by name is the number that each pod has under that name, in every
// version and on every kind of node; a pod without it is no backend, and that is said.
func TestNamedTargetPort(t *testing.T) {
	t.Parallel()
	for _, design := range []string{"l2bridge-flannel-host-gw", "overlay-flannel-vxlan", "transparent-ovn-kubernetes"} {
		for _, version := range []string{"1.20", "1.33", "1.34"} {
			f := overDesign(t, design, namedPorts, "  pods: [{name: other, node: win2, labels: {app: web}, listen: [tcp/8081]}]\n")
			c, err := lab.Build(t.Context(), f, lab.Options{Setting: &spec.Setting{Kubernetes: version}})
			if err != nil {
				t.Fatal(err)
			}
			for from, to := range map[string]string{"pod/client": "svc/web:80", "node/linux1": "svc/web:80"} {
				tr, err := c.Trace(t.Context(), lab.Request{From: from, To: to})
				if err != nil {
					t.Fatal(err)
				}
				if tr.Verdict != trace.Delivered || len(tr.Paths) != 2 {
					t.Errorf("%s %s from %s: %s (%s) in %d ways", design, version, from, tr.Verdict, tr.Reason, len(tr.Paths))
				}
				var notices []string
				for _, n := range tr.NotModelled {
					notices = append(notices, n.What+": "+n.Why)
				}
				if text := strings.Join(notices, "\n"); !strings.Contains(text, "pod default/other as backend of Service default/web: the Service's targetPort is \"http\"") {
					t.Errorf("%s %s: no notice of the pod without the port: %s", design, version, text)
				}
			}
		}
	}
}
