package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// podRanges gives each Node the pod range of the lab's node, as the controller manager's
// IPAM does: the lab's routes and plugins are made for these, and the controller would
// hand out the ranges in the order in which nodes happen to register.
func (c *Cluster) podRanges() {
	f := informers.NewSharedInformerFactory(c.Client, 0)
	give := func(o any) {
		n, ok := o.(*corev1.Node)
		if !ok || len(n.Spec.PodCIDRs) > 0 {
			return
		}
		l := c.lab.Node(n.Name)
		if l == nil || len(l.PodCIDRs) == 0 {
			return
		}
		var ranges []string
		for _, p := range l.PodCIDRs {
			ranges = append(ranges, p.String())
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"podCIDR": ranges[0], "podCIDRs": ranges}})
		if err == nil {
			_, err = c.Client.CoreV1().Nodes().Patch(c.life, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil && c.life.Err() == nil {
			c.say(fmt.Sprintf("pod range of node %s: %v", n.Name, err))
		}
	}
	_, err := f.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: give,
		UpdateFunc: func(_, o any) { give(o) }})
	if err != nil {
		c.say(err.Error())
		return
	}
	f.Start(c.life.Done())
	<-c.life.Done()
	f.Shutdown()
}

// Seen is a node as the API server has it.
type Seen struct {
	Name string `json:"name"`
	// Ready is the condition's status: True, False or Unknown.
	Ready    string   `json:"ready"`
	Address  string   `json:"address"`
	PodCIDRs []string `json:"podCIDRs"`
	System   string   `json:"system"`
	Kernel   string   `json:"kernel"`
	Kubelet  string   `json:"kubelet"`
	Runtime  string   `json:"runtime"`
	// Hollow nodes have no kubelet: kwok says that they are Ready.
	Hollow bool `json:"hollow,omitempty"`
}

// Nodes are those that the API server has.
func (c *Cluster) Nodes(ctx context.Context) ([]Seen, error) {
	list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []Seen
	for i := range list.Items {
		all = append(all, seen(&list.Items[i]))
	}
	return all, nil
}

func seen(n *corev1.Node) Seen {
	i := n.Status.NodeInfo
	s := Seen{Name: n.Name, Ready: string(corev1.ConditionUnknown), PodCIDRs: n.Spec.PodCIDRs, System: i.OSImage, Kernel: i.KernelVersion,
		Kubelet: i.KubeletVersion, Runtime: i.ContainerRuntimeVersion,
		Hollow: n.Labels[HollowLabel] == "true"}
	for _, k := range n.Status.Conditions {
		if k.Type == corev1.NodeReady {
			s.Ready = string(k.Status)
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && s.Address == "" {
			s.Address = a.Address
		}
	}
	return s
}
