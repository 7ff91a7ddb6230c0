package claims

// A static check needs no packet: it looks at a manifest, at a node's
// configuration, at the setting itself, or asks one of the small models of
// scheduling and resources.

// Rule says what in a manifest or in a node's configuration the claim is
// about, and what to tell its author. A rule applies in the settings that
// the Where of its check selects; conformance/check evaluates it.
type Rule struct {
	// On is what the rule looks at, one of [Subjects].
	On string `yaml:"on"`
	// Pods narrows a rule on pods, one of [podKinds]; "" means Windows pods
	// that are not HostProcess pods.
	Pods string `yaml:"pods,omitempty"`
	// Field is where to look, from the root of the subject:
	// "spec.containers[*].securityContext.privileged",
	// `metadata.annotations["preserve-destination"]`. containers[*] includes
	// init and ephemeral containers. For a command line it is a flag,
	// "--hostname-override", or a variable of its environment, "$KUBE_NETWORK".
	Field string `yaml:"field,omitempty"`
	// When is the condition on the field; "" means "set". See [ParseCondition].
	When string `yaml:"when,omitempty"`
	// Unless is a second field and condition, under which the rule finds nothing: "--config set",
	// `spec.os.name is windows`.
	Unless string `yaml:"unless,omitempty"`
	// Test names a condition written in Go, for what a field cannot express;
	// With are its arguments. A rule has a field or a test, or neither when On
	// is "setting": then the setting itself is the mistake.
	Test string            `yaml:"test,omitempty"`
	With map[string]string `yaml:"with,omitempty"`
	// Level is error, warning or info.
	Level string `yaml:"level"`
	// Effect is what happens on Windows, one of [Effects].
	Effect string `yaml:"effect"`
	// Says is what happens, in a sentence without a full stop; Write what to
	// write instead. Both may hold {value}, {field}, {container} and what else
	// the test provides.
	Says  string `yaml:"says"`
	Write string `yaml:"write,omitempty"`
	// Bad is an example that the rule must find, Good one that it must not:
	// documents as in a file. For a pod, a part of a manifest without kind is
	// enough; it is merged into a small Windows pod, lists entry by entry.
	// For a rule on the setting they are settings with semicolons between them, just inside
	// and just outside of its range: "kubernetes=1.20 windows=2019". See [ParseTargets].
	Bad  string `yaml:"bad,omitempty"`
	Good string `yaml:"good,omitempty"`
	// Found and NotFound are values of the field just inside and just outside of the
	// condition. A condition with a number or a version needs them: they must tell it from
	// every other one that is a step away.
	Found    []string `yaml:"found,omitempty"`
	NotFound []string `yaml:"notFound,omitempty"`
}

// Subjects are what a rule can look at.
var Subjects = []string{
	// Kubernetes objects. "pod" is a Pod or the template of a workload, "workload"
	// what makes pods (Deployment, DaemonSet, Job, ...), "object" any object.
	"pod", "workload", "service", "runtimeclass", "networkpolicy", "persistentvolume", "persistentvolumeclaim", "node", "object",
	// A node's configuration: files and command lines. "service-manager" are
	// nssm and sc lines, "kubelet-config" and "kube-proxy-config" the
	// components' configuration files.
	"cni", "net-conf", "subnet-env", "antrea-agent", "kubelet", "kubelet-config", "kube-proxy", "kube-proxy-config", "flanneld",
	"service-manager",
	// The setting that was asked for.
	"setting",
}

// podKinds narrow a rule on pods.
var podKinds = []string{
	"windows",     // Windows pods, HostProcess pods too
	"hostprocess", // Windows HostProcess pods only
	"undecided",   // pods of which nothing says on which system they run
	"linux",       // Linux pods
	"any",
}

// Levels of a finding, the gravest first.
var Levels = []string{"error", "warning", "info"}

// Effects are what happens on Windows with what a rule finds.
var Effects = map[string]string{
	"rejected-by-api":     "the API server refuses it",
	"rejected-by-kubelet": "the kubelet refuses to start the pod",
	"refused":             "the program refuses the configuration",
	"fails":               "it is accepted, and what it asks for fails",
	"ignored":             "it is accepted and has no effect",
	"different":           "it works differently from Linux",
	"unsupported":         "the documents say that it is not supported; how it fails they do not say",
	"unlisted":            "the documents do not list it",
	"risk":                "it works, and something else may break",
	"advice":              "it works; the documents advise otherwise",
}

// Placement asks the scheduling model on which of the nodes a pod can land.
type Placement struct {
	// Pod is a manifest, or a part of one that is merged into a pod without any
	// selector; RuntimeClasses may follow as further documents.
	Pod string `yaml:"pod"`
	// Nodes are those of the trial, names of [CastNodes].
	Nodes []string `yaml:"nodes"`
	// Fits are the nodes that the scheduler may choose, Runs those of them on
	// which the pod's containers can start.
	Fits []string `yaml:"fits"`
	Runs []string `yaml:"runs"`
}

// Resources asks the model of a kubelet on Windows.
type Resources struct {
	// Capacity of the node: {cpu: "4", memory: 16Gi}.
	Capacity map[string]string `yaml:"capacity,omitempty"`
	// Kubelet is the command line.
	Kubelet string `yaml:"kubelet,omitempty"`
	// Container are the resources of one container: {limits.cpu: 500m}.
	Container map[string]string `yaml:"container,omitempty"`
	// Want is what comes out, by the names of sim/kube/resources: allocatable.cpu,
	// allocatable.memory, cpu.maximum, cpu.shares, evicts.memory, ...
	Want map[string]string `yaml:"want"`
}

// Doctor asks what is found in a folder taken from a node.
type Doctor struct {
	// Node is a folder of fixtures/nodes.
	Node string `yaml:"node"`
	// Finds is the cause that must be found, as conformance/node/doctor names it; ""
	// means that this claim's causes must not be found.
	Finds string `yaml:"finds"`
}

// Trouble is an entry of a troubleshooting chapter.
type Trouble struct {
	Symptom string `yaml:"symptom"`
	Cause   string `yaml:"cause"`
	Cure    string `yaml:"cure"`
}

// Needs are what a claim without checks would need, for coverage.
var Needs = map[string]string{
	"cluster": "a cluster with Windows nodes; kubelet.exe and kube-proxy.exe of a simulated one can show it",
	"node":    "a real Windows node: it is Windows, or its container runtime, that shows it",
	"lab":     "a lab or a model that is not there yet",
	"nothing": "nothing can be run: a statement about plans, licences, background or documents",
}
