package labfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/sim/trace"
)

// What is made of the fields of Kubernetes objects. A field that winlab does not
// read either says nothing about packets and names, or has a notice. A test compares
// the tables with Kubernetes' own types, so that a field which is new there does not
// pass unseen.

// use is what is made of a field.
type use int

const (
	counts use = iota // it counts; sim/lab/testdata/effects has a case
	silent            // nothing that a packet meets depends on it
	unused            // something may depend on it, and nothing follows: it gets a notice
)

// fieldUse is what is made of a field, and for one that is not read, why.
type fieldUse struct {
	use use
	why string
}

// fieldsThatCount makes the rows of fields that are read, silentFields those of fields that say nothing about
// packets.
func fieldsThatCount(names ...string) map[string]fieldUse { return rows(fieldUse{use: counts}, names) }
func silentFields(why string, names ...string) map[string]fieldUse {
	return rows(fieldUse{silent, why}, names)
}

func rows(u fieldUse, names []string) map[string]fieldUse {
	m := map[string]fieldUse{}
	for _, n := range names {
		m[n] = u
	}
	return m
}

// but makes rows of fields with a notice: name, why.
func but(pairs ...string) map[string]fieldUse {
	m := map[string]fieldUse{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = fieldUse{unused, pairs[i+1]}
	}
	return m
}

func table(parts ...map[string]fieldUse) map[string]fieldUse {
	m := map[string]fieldUse{}
	for _, p := range parts {
		maps.Copy(m, p)
	}
	return m
}

const placed = "winlab does not use it to place pods; pin the pod with pods: {node}"

var objectFields = sync.OnceValue(func() map[string]map[string]fieldUse {
	return map[string]map[string]fieldUse{
		"Service.spec": table(
			fieldsThatCount("ports", "selector", "clusterIP", "clusterIPs", "type", "externalIPs", "sessionAffinity", "loadBalancerIP",
				"externalName", "externalTrafficPolicy",
				"healthCheckNodePort", "publishNotReadyAddresses", "internalTrafficPolicy", "allocateLoadBalancerNodePorts", "ipFamilies",
				"ipFamilyPolicy"),
			but("loadBalancerSourceRanges",
				"kube-proxy on Windows does not read it, and what Linux nodes and the load balancer outside the cluster do with it is not simulated; write it as rules of a segment",
				"sessionAffinityConfig", "how long a client stays with a backend is not simulated",
				"trafficDistribution", "backends are not preferred by their zone"),
			silentFields("it picks the program that makes the load balancer outside the cluster", "loadBalancerClass"),
		),
		"Service.spec.ports": table(fieldsThatCount("name", "protocol", "port", "targetPort", "nodePort"),
			silentFields("a hint for programs above TCP", "appProtocol")),
		"Service.status.loadBalancer.ingress": table(fieldsThatCount("ip"),
			but("hostname", "the addresses of the name are not known; set them with dns: records", "ipMode",
				"kube-proxy is assumed to serve the address, as with VIP"),
			silentFields("a report", "ports")),
		"EndpointSlice": table(fieldsThatCount("addressType", "endpoints", "ports")),
		"EndpointSlice.endpoints": table(fieldsThatCount("addresses", "conditions", "hostname", "targetRef", "nodeName"),
			silentFields("kube-proxy reads nodeName instead", "deprecatedTopology"),
			but("zone", "backends are not preferred by their zone", "hints", "backends are not preferred by their zone")),
		"EndpointSlice.endpoints.conditions": fieldsThatCount("ready", "serving", "terminating"),
		"EndpointSlice.ports": table(fieldsThatCount("name", "protocol", "port"),
			silentFields("a hint for programs above TCP", "appProtocol")),
		"Endpoints.subsets":           fieldsThatCount("addresses", "notReadyAddresses", "ports"),
		"Endpoints.subsets.addresses": fieldsThatCount("ip", "hostname", "nodeName", "targetRef"),
		"Endpoints.subsets.ports": table(fieldsThatCount("name", "protocol", "port"),
			silentFields("a hint for programs above TCP", "appProtocol")),
		"Deployment.spec": table(fieldsThatCount("replicas", "selector", "template"),
			silentFields("how pods are replaced", "strategy", "minReadySeconds", "revisionHistoryLimit", "paused", "progressDeadlineSeconds")),
		"ReplicaSet.spec": table(fieldsThatCount("replicas", "selector", "template"), silentFields("how pods are replaced", "minReadySeconds")),
		"DaemonSet.spec": table(fieldsThatCount("selector", "template"),
			silentFields("how pods are replaced", "updateStrategy", "minReadySeconds", "revisionHistoryLimit")),
		"StatefulSet.spec": table(fieldsThatCount("replicas", "selector", "template", "serviceName"), but("ordinals", "pods are numbered from 0"),
			silentFields("how pods are replaced and what they store", "volumeClaimTemplates", "podManagementPolicy", "updateStrategy",
				"revisionHistoryLimit", "minReadySeconds", "persistentVolumeClaimRetentionPolicy")),
		"Pod.spec": table(fieldsThatCount("containers", "nodeSelector", "nodeName", "hostNetwork", "hostname", "subdomain", "os",
			"initContainers", "dnsPolicy", "dnsConfig"),
			but("affinity", placed, "schedulerName", placed, "tolerations", placed, "topologySpreadConstraints", placed, "schedulingGates",
				"the pod is assumed to run", "readinessGates", "the pod is assumed to be ready; write pods: {ready: false} if it is not",
				"hostAliases", "names in the hosts file of a pod are not looked up", "setHostnameAsFQDN",
				"the pod's name is not looked up by the pod itself", "hostnameOverride", "the pod's name is not looked up by the pod itself",
				"ephemeralContainers", "programs in them do not listen", "runtimeClassName",
				"containers are assumed to be process-isolated; Hyper-V isolation is not simulated"),
			silentFields("storage", "volumes", "resourceClaims"), silentFields("rights at the API server", "serviceAccountName", "serviceAccount",
				"automountServiceAccountToken", "imagePullSecrets"),
			silentFields("when a pod ends", "restartPolicy", "terminationGracePeriodSeconds", "activeDeadlineSeconds", "evictionResponders"),
			silentFields("what processes see of each other", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers", "securityContext"),
			silentFields("the order in which pods are placed", "priorityClassName", "priority", "preemptionPolicy", "overhead", "resources",
				"schedulingGroup"),
			silentFields("variables of programs", "enableServiceLinks")),
		"Pod.spec.containers": table(fieldsThatCount("ports"),
			silentFields("what the program is and does", "name", "image", "command", "args", "workingDir", "envFrom", "env", "imagePullPolicy",
				"stdin", "stdinOnce", "tty", "terminationMessagePath", "terminationMessagePolicy"),
			silentFields("amounts of resources and storage", "resources", "resizePolicy", "volumeMounts", "volumeDevices", "securityContext"),
			silentFields("the pod is ready unless the lab says otherwise", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
				"restartPolicy", "restartPolicyRules")),
		"Pod.spec.containers.ports": fieldsThatCount("name", "hostPort", "containerPort", "protocol", "hostIP"),
	}
})

// notFollowed gives a notice for every field of a part of an object of which nothing
// follows.
func (m *Manifests) notFollowed(part string, fields any, origin *trace.Origin) {
	list, ok := fields.([]any)
	if !ok {
		list = []any{fields}
	}
	for _, e := range list {
		set, _ := e.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(set)) {
			u := objectFields()[part][name]
			if u.use != unused || set[name] == nil {
				continue
			}
			what := fmt.Sprintf("%s of %s", name, origin.What)
			m.note(trace.Notice{What: what, Why: u.why, At: origin})
		}
	}
}

// valueAt is the value at a path of an object, nil for none. In a list it is those of all
// elements.
func valueAt(v any, path ...string) any {
	for i, key := range path {
		switch w := v.(type) {
		case map[string]any:
			v = w[key]
		case []any:
			var all []any
			for _, e := range w {
				switch x := valueAt(e, path[i:]...).(type) {
				case nil:
				case []any:
					all = append(all, x...)
				default:
					all = append(all, x)
				}
			}
			return all
		default:
			return nil
		}
	}
	return v
}

// fields notes what is not followed in an object.
func (m *Manifests) fields(kind string, doc *object, origin *trace.Origin) {
	if kind == "List" {
		return // its objects come one by one
	}
	var o map[string]any
	if err := doc.decode(&o); err != nil {
		return // the reader of the kind says so
	}
	m.notFollowed(kind, any(o), origin)
	pod, podMeta := valueAt(o, "spec", "template", "spec"), valueAt(o, "spec", "template", "metadata")
	if kind == "Pod" {
		pod, podMeta = o["spec"], o["metadata"]
	}
	for part := range objectFields() {
		if path, ok := strings.CutPrefix(part, kind+"."); ok && kind != "Pod" {
			m.notFollowed(part, valueAt(o, strings.Split(path, ".")...), origin)
		}
		if path, ok := strings.CutPrefix(part, "Pod.spec"); ok && pod != nil {
			m.notFollowed(part, valueAt(pod, splitPath(path)...), origin)
		}
	}
	if kind == "Service" {
		m.annotated(o["metadata"], origin)
	}
	if pod != nil {
		m.podAnnotated(podMeta, origin)
	}
	m.nodeSelectors(valueAt(pod, "nodeSelector"), origin)
	// Those of one place are in order.
	first := len(m.NotModelled)
	for first > 0 && m.NotModelled[first-1].Place() == m.NotModelled[len(m.NotModelled)-1].Place() {
		first--
	}
	slices.SortStableFunc(m.NotModelled[first:], func(a, b trace.Notice) int { return strings.Compare(a.What, b.What) })
}

func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}

// nodeSelectors notes the keys of a selector that no node of a lab has as a label.
func (m *Manifests) nodeSelectors(selector any, origin *trace.Origin) {
	set, _ := selector.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(set)) {
		switch key {
		case "kubernetes.io/os", "beta.kubernetes.io/os":
		default:
			m.note(trace.Notice{What: "nodeSelector " + key + " of " + origin.What, Why: "nodes of a lab do not have this label: " + placed,
				At: origin})
		}
	}
}

// ManifestFields lists the fields of Kubernetes objects that count, sorted:
// "Service.spec.ports.nodePort".
func ManifestFields() []string {
	var all []string
	for part, fields := range objectFields() {
		for name, u := range fields {
			if u.use == counts {
				all = append(all, part+"."+name)
			}
		}
	}
	for _, name := range annotations {
		all = append(all, "Service.metadata.annotations."+name)
	}
	slices.Sort(all)
	return all
}
