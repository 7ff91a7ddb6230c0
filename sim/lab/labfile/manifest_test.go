package labfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/winlab-dev/winlab/sim/trace"
)

// manifestParts are Kubernetes' own types of the parts of objects in objectFields.
var manifestParts = map[string]reflect.Type{
	"Service.spec":                        reflect.TypeFor[corev1.ServiceSpec](),
	"Service.spec.ports":                  reflect.TypeFor[corev1.ServicePort](),
	"Service.status.loadBalancer.ingress": reflect.TypeFor[corev1.LoadBalancerIngress](),
	"EndpointSlice":                       reflect.TypeFor[discoveryv1.EndpointSlice](),
	"EndpointSlice.endpoints":             reflect.TypeFor[discoveryv1.Endpoint](),
	"EndpointSlice.endpoints.conditions":  reflect.TypeFor[discoveryv1.EndpointConditions](),
	"EndpointSlice.ports":                 reflect.TypeFor[discoveryv1.EndpointPort](),
	//lint:ignore SA1019 as in readEndpoints
	"Endpoints.subsets":           reflect.TypeFor[corev1.EndpointSubset](),
	"Endpoints.subsets.addresses": reflect.TypeFor[corev1.EndpointAddress](),
	"Endpoints.subsets.ports":     reflect.TypeFor[corev1.EndpointPort](),
	"Deployment.spec":             reflect.TypeFor[appsv1.DeploymentSpec](),
	"ReplicaSet.spec":             reflect.TypeFor[appsv1.ReplicaSetSpec](),
	"DaemonSet.spec":              reflect.TypeFor[appsv1.DaemonSetSpec](),
	"StatefulSet.spec":            reflect.TypeFor[appsv1.StatefulSetSpec](),
	"Pod.spec":                    reflect.TypeFor[corev1.PodSpec](),
	"Pod.spec.containers":         reflect.TypeFor[corev1.Container](),
	"Pod.spec.containers.ports":   reflect.TypeFor[corev1.ContainerPort](),
}

// Every field that Kubernetes has in what winlab decodes is read, silent for a reason
// or gives a notice.
func TestFieldsOfKubernetes(t *testing.T) {
	t.Parallel()
	for part, typ := range manifestParts {
		fields := objectFields()[part]
		var names []string
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" || name == "metadata" { // the head of an object
				continue
			}
			names = append(names, name)
			u, ok := fields[name]
			switch {
			case !ok:
				t.Errorf("%s.%s is in no table", part, name)
			case u.use != counts && u.why == "":
				t.Errorf("%s.%s: say why it does not count", part, name)
			}
			if u.use == unused {
				m := &Manifests{}
				m.notFollowed(part, map[string]any{name: "x"}, &trace.Origin{What: "Thing a"})
				if len(m.NotModelled) != 1 || m.NotModelled[0].What != name+" of Thing a" || m.NotModelled[0].Why != u.why {
					t.Errorf("%s.%s: notices %+v", part, name, m.NotModelled)
				}
			}
		}
		for name := range fields {
			if !slices.Contains(names, name) {
				t.Errorf("%s has no field %s", part, name)
			}
		}
	}
	for part := range objectFields() {
		if manifestParts[part] == nil {
			t.Errorf("there is no type for %s", part)
		}
	}
}

// A field below a workload's template is found where it is.
func TestFieldsAreFoundInTemplates(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	doc := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]
      nodeSelector: {kubernetes.io/os: windows, disk: ssd}
      containers: [{name: c, image: i}]
`
	if err := m.add("f.yaml", 7, []byte(doc)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range m.NotModelled {
		got = append(got, n.What+" "+n.Place())
	}
	if want := []string{"hostAliases of Deployment d f.yaml:7", "nodeSelector disk of Deployment d f.yaml:7"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// CountedFields are the fields of manifests that must have an effect: the cases of
// sim/lab compare with them.
func TestCountedFieldsAreExported(t *testing.T) {
	t.Parallel()
	if all := ManifestFields(); !slices.Contains(all, "Service.spec.ports.nodePort") || slices.Contains(all, "Pod.spec.volumes") ||
		!slices.IsSorted(all) {
		t.Errorf("%q", all)
	}
}
