package importer

import (
	"fmt"
	"path"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// maxTable bounds a file in which tables are looked for, in bytes: kubectl prints some hundred
// bytes for a pod.
const maxTable = 32 << 20

// tables takes nodes and pods out of what kubectl get -o wide prints. Objects count more: what
// one says is not taken from a table.
func (im *importing) tables(f string) {
	if e := strings.ToLower(path.Ext(f)); e != ".txt" && e != "" || im.b.Size(f) > maxTable {
		return
	}
	if m, ok := im.b.Manifest.Find(f); ok && m.Node != "" {
		return
	}
	data, err := im.b.Read(f)
	if err != nil {
		return // whoever reads it next says so
	}
	text, ok := dump.Decode(data)
	if !ok {
		return
	}
	taken := false
	for _, row := range dump.CapitalTables(dump.Split(im.b.Shown(f), text), "NAME") {
		at := object{File: im.b.Shown(f), Line: row.Line}
		taken = im.nodeRow(row, at) || im.podRow(row, at) || taken
	}
	if taken && !im.showsHNS(f) {
		im.cluster[f] = true
	}
}

// nodeRow takes a row of kubectl get nodes -o wide.
func (im *importing) nodeRow(row *yaml.Node, at object) bool {
	name := dump.Str(row, "NAME")
	if !dump.Has(row, "NAME", "STATUS", "ROLES", "VERSION", "INTERNAL-IP") {
		return false
	}
	if im.knows(name) {
		return true
	}
	n := kubeNode{at: at}
	n.Name = name
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: dump.Str(row, "VERSION"), OSImage: dump.Str(row, "OS-IMAGE"),
		KernelVersion: dump.Str(row, "KERNEL-VERSION")}
	if a := dump.Str(row, "INTERNAL-IP"); a != "<none>" {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: a}}
	}
	if strings.Contains(dump.Str(row, "ROLES"), "control-plane") {
		n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	}
	switch image := n.Status.NodeInfo.OSImage; {
	case strings.Contains(image, "Windows"):
		n.Status.NodeInfo.OperatingSystem = "windows"
	case image != "" && !strings.HasPrefix(image, "<"):
		n.Status.NodeInfo.OperatingSystem = "linux"
	}
	im.kube = append(im.kube, n)
	return true
}

// podRow takes a row of kubectl get pods -o wide. It shows no ports, and no labels unless
// --show-labels asked for them.
func (im *importing) podRow(row *yaml.Node, at object) bool {
	if !dump.Has(row, "NAME", "READY", "STATUS", "IP", "NODE") {
		return false
	}
	p := kubePod{at: at, table: true, unlabelled: !dump.Has(row, "LABELS")}
	p.Name, p.Namespace = dump.Str(row, "NAME"), dump.Str(row, "NAMESPACE")
	if p.Namespace == "" {
		p.Namespace = "default"
		im.r.conclude("namespace of pod "+comment(p.Name), p.Namespace, "the table of kubectl has no column NAMESPACE")
	}
	if !p.unlabelled {
		p.Labels = map[string]string{}
		for _, pair := range strings.Split(dump.Str(row, "LABELS"), ",") {
			if k, v, ok := strings.Cut(pair, "="); ok {
				p.Labels[k] = v
			}
		}
	}
	for i := range im.pods {
		if o := &im.pods[i]; o.Name == p.Name && o.Namespace == p.Namespace {
			if o.unlabelled && !p.unlabelled {
				o.Labels, o.unlabelled = p.Labels, false
			}
			return true
		}
	}
	p.Spec.NodeName, p.Status.PodIP = dump.Str(row, "NODE"), dump.Str(row, "IP")
	if p.Spec.NodeName == "<none>" {
		p.Spec.NodeName = ""
	}
	ready, all, _ := strings.Cut(dump.Str(row, "READY"), "/")
	p.Status.Phase, p.unsure = phase(dump.Str(row, "STATUS"))
	if dump.Str(row, "STATUS") == "Terminating" {
		p.DeletionTimestamp = &metav1.Time{} // a table does not show when
	}
	if ready == all && ready != "0" && ready != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	im.pods = append(im.pods, p)
	return true
}

// phase is what the column STATUS says of a pod's phase. It shows the phase, the reason of the pod's
// status, or that of a container that waits or has ended (k8s.io/kubernetes
// pkg/printers/internalversion/printers.go printPod). A container that waits has a pod that goes on.
// One that has ended, as in "Completed", "Error" or "OOMKilled", may be started again or not, by its
// restartPolicy, which no table shows; and a pod whose node does not report is "Unknown": then unsure is
// the text.
func phase(status string) (p corev1.PodPhase, unsure string) {
	switch status {
	case "Succeeded":
		return corev1.PodSucceeded, ""
	case "Failed", "Evicted", "NodeAffinity", "NodeShutdown", "Preempting", "OutOfcpu", "OutOfmemory", "OutOfpods", "UnexpectedAdmissionError":
		return corev1.PodFailed, ""
	case "Pending", "SchedulingGated":
		return corev1.PodPending, ""
	case "Running", "NotReady", "Terminating", "ContainerCreating", "PodInitializing",
		"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
		"RegistryUnavailable",
		"CreateContainerConfigError", "CreateContainerError", "PreStartHookError", "PostStartHookError", "RunContainerError":
		return corev1.PodRunning, ""
	}
	if strings.HasPrefix(status, "Init:") {
		return corev1.PodPending, ""
	}
	if status == "" {
		status = "none"
	}
	return "", status
}

// podsOfHosts marks the pods of tables that have their node's own address: a table does not show
// hostNetwork.
func (im *importing) podsOfHosts() {
	for i := range im.pods {
		p := &im.pods[i]
		if !p.table {
			continue
		}
		for j := range im.kube {
			if k := &im.kube[j]; k.Name == p.Spec.NodeName && p.Status.PodIP != "" && internalIP(&k.Node).String() == p.Status.PodIP {
				p.Spec.HostNetwork = true
			}
		}
	}
}

// unnamed is a pod behind a Service of which only a table is known, where the Service asks for a port
// by its name; nil where there is none.
func (im *importing) unnamed(s *corev1.Service) (*kubePod, string) {
	if len(s.Spec.Selector) == 0 {
		return nil, ""
	}
	of := labels.SelectorFromSet(s.Spec.Selector)
	for i := range im.pods {
		p := &im.pods[i]
		if !p.table || p.Namespace != s.Namespace || !running(p) || !of.Matches(labels.Set(p.Labels)) {
			continue
		}
		for _, port := range s.Spec.Ports {
			if port.TargetPort.Type == intstr.String {
				return p, port.TargetPort.StrVal
			}
		}
	}
	return nil, ""
}

// backendsUnknown says, of a Service that chooses pods by labels, why these are unknown: "" where
// the labels of all pods are there.
func (im *importing) backendsUnknown() string {
	for i := range im.pods {
		if p := &im.pods[i]; p.unlabelled {
			return fmt.Sprintf("the table of pods at %s:%d does not show their labels", p.at.File, p.at.Line)
		}
	}
	return ""
}
