package labfile

import "strings"

// silentKinds are the kinds that do not concern packets, by their API group ("" is the core group):
// a lab needs no notice of them.
var silentKinds = map[string]string{
	"ConfigMap": "files and variables of programs", "Secret": "files and variables of programs",
	"Namespace":      "a name; pods and Services say theirs",
	"ServiceAccount": "rights at the API server", "Role": "rights at the API server", "RoleBinding": "rights at the API server",
	"ClusterRole": "rights at the API server", "ClusterRoleBinding": "rights at the API server",
	"PersistentVolume": "storage", "PersistentVolumeClaim": "storage", "StorageClass": "storage", "VolumeAttachment": "storage",
	"CSIDriver": "storage", "CSINode": "storage",
	"PriorityClass": "the order in which pods are placed", "PodDisruptionBudget": "how many pods may be evicted at once",
	"ResourceQuota": "amounts of resources",
	"LimitRange":    "amounts of resources", "RuntimeClass": "how containers are started", "Lease": "which of several controllers works",
	"Event":                    "a report",
	"CustomResourceDefinition": "the form of other objects",
}

// withoutEffect says why an object of a kind that is not read has no effect; "" for kinds that do
// not concern packets.
func withoutEffect(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	if _, silent := silentKinds[kind]; silent {
		return ""
	}
	if group != "" && group != "batch" {
		kind += " of " + group
	}
	return "objects of kind " + kind + " are not simulated; if packets depend on it, describe its effect in the lab in another way"
}
