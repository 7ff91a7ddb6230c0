package manifest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func serviceWith(spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  selector: {app: web}\n" + spec
}

func deployment(name, system string, replicas int, port string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec:\n  replicas: " + strconv.Itoa(replicas) +
		"\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {nodeSelector: {kubernetes.io/os: " +
		system +
		"}, containers: [{name: c, image: i, ports: [{name: http, containerPort: " + port + "}]}]}\n"
}

func TestServiceTests(t *testing.T) {
	affinity := map[string]string{"field": "spec.sessionAffinity", "when": "is ClientIP"}
	most := map[string]string{"most": "64"}
	sctp := map[string]string{"field": "spec.ports[*].protocol", "when": "is SCTP"}
	ranges := map[string]string{"field": "spec.loadBalancerSourceRanges"}
	const clientIP = "  sessionAffinity: ClientIP\n"
	many := "---\napiVersion: v1\nkind: Endpoints\nmetadata: {name: s}\nsubsets:\n- addresses:\n"
	slice := "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s-1, labels: {kubernetes.io/service-name: s}}\naddressType: IPv4\nports: []\nendpoints:\n"
	for i := range 65 {
		many += "  - {ip: 10.0.0." + strconv.Itoa(i) + "}\n"
		slice += "- {addresses: [10.0.0." + strconv.Itoa(i) + "]}\n"
	}
	for _, tc := range []struct {
		name, test string
		args       map[string]string
		text       string
		want       []string
	}{
		{"a field", "served-on-windows", affinity, serviceWith(clientIP), []string{"6:20 spec.sessionAffinity value=ClientIP"}},
		{"another value", "served-on-windows", affinity, serviceWith("  sessionAffinity: None\n"), nil},
		{"for Windows pods", "served-on-windows", affinity, serviceWith(clientIP) + deployment("w", "windows", 1, "80"),
			[]string{"6:20 spec.sessionAffinity value=ClientIP"}},
		{"for Linux pods", "served-on-windows", affinity, serviceWith(clientIP) + deployment("l", "linux", 1, "80"), nil},
		{"for pods of both systems", "served-on-windows", affinity, serviceWith(clientIP) + deployment("l", "linux", 1, "80") +
			deployment("w", "windows", 1, "80"), []string{"6:20 spec.sessionAffinity value=ClientIP"}},
		{"for pods of another namespace", "served-on-windows", affinity,
			strings.Replace(serviceWith(clientIP), "{name: s}", "{name: s, namespace: a}", 1) + deployment("l", "linux", 1, "80") +
				deployment("w", "windows", 1, "80"),
			[]string{"6:20 spec.sessionAffinity value=ClientIP"}},
		{"for no pod of a file with Linux pods only", "served-on-windows", affinity,
			strings.Replace(serviceWith(clientIP), "app: web", "app: other", 1) + deployment("l", "linux", 1, "80"), nil},
		{"headless", "served-on-windows", affinity, serviceWith(clientIP + "  clusterIP: None\n"), nil},
		{"a name only", "served-on-windows", affinity, serviceWith(clientIP + "  type: ExternalName\n  externalName: a.b\n"), nil},
		{"a list", "served-on-windows", ranges, serviceWith("  loadBalancerSourceRanges: [10.0.0.0/8]\n"),
			[]string{"6:30 spec.loadBalancerSourceRanges value=10.0.0.0/8"}},
		{"an empty list", "served-on-windows", ranges, serviceWith("  loadBalancerSourceRanges: []\n"), nil},

		{"headless, and still for pods", "for-windows-pods", sctp,
			serviceWith("  clusterIP: None\n  ports: [{port: 1}, {port: 2, protocol: SCTP}]\n"), []string{"7:42 spec.ports[1].protocol value=SCTP"}},
		{"for pods of Linux", "for-windows-pods", sctp, serviceWith("  ports: [{port: 2, protocol: SCTP}]\n") + deployment("l", "linux", 1, "80"),
			nil},

		{"another time", "timeout-differs", nil, serviceWith(clientIP + "  sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}\n"),
			[]string{"7:54 spec.sessionAffinityConfig.clientIP.timeoutSeconds value=60"}},
		{"the default", "timeout-differs", nil, serviceWith(clientIP + "  sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}\n"), nil},
		{"a time without affinity", "timeout-differs", nil, serviceWith("  sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}\n"), nil},

		{"as many as there may be", "backends-above", most, serviceWith("") + deployment("w", "windows", 64, "80"), nil},
		{"one more", "backends-above", most, serviceWith("") + deployment("w", "windows", 65, "80"),
			[]string{"5:3 spec.selector count=65 most=64"}},
		{"two workloads", "backends-above", most, serviceWith("") + deployment("w", "windows", 40, "80") + deployment("v", "windows", 30, "80"),
			[]string{"5:3 spec.selector count=70 most=64"}},
		{"addresses by hand", "backends-above", most, serviceWith("") + many, []string{"5:3 spec.selector count=65 most=64"}},
		{"addresses in a slice", "backends-above", most, serviceWith("") + slice, []string{"5:3 spec.selector count=65 most=64"}},
		{"addresses of another Service", "backends-above", most, serviceWith("") + strings.Replace(many, "{name: s}", "{name: t}", 1), nil},

		{"one number", "target-port-differs", nil, serviceWith("  ports: [{port: 80, targetPort: http}]\n") +
			deployment("w", "windows", 1, "80") + deployment("v", "windows", 1, "80"), nil},
		{"two numbers", "target-port-differs", nil, serviceWith("  ports: [{port: 80, targetPort: http}]\n") +
			deployment("w", "windows", 1, "8080") + deployment("v", "windows", 1, "80"),
			[]string{"6:34 spec.ports[0].targetPort numbers=80 and 8080 value=http"}},
		{"a number", "target-port-differs", nil, serviceWith("  ports: [{port: 80, targetPort: 80}]\n") + deployment("w", "windows", 1, "8080") +
			deployment("v", "windows", 1, "80"), nil},

		{"a policy for all pods", "policy-for-windows-pods", nil,
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np}\nspec: {podSelector: {}}\n" +
				deployment("w", "windows", 1, "80"), []string{"1:1"}},
		{"a policy for Linux pods", "policy-for-windows-pods", nil,
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np}\nspec: {podSelector: {}}\n" +
				deployment("l", "linux", 1, "80"), nil},
	} {
		t.Run(tc.test+"/"+tc.name, func(t *testing.T) {
			if got := found(t, tc.test, tc.args, tc.text); !slices.Equal(got, tc.want) {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
