package flow

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/plan"
)

// An end of a flow is on a node when it is the node, or a pod of that namespace on it.
func TestEndOn(t *testing.T) {
	pod := func(namespace, name, node string) *plan.Pod {
		return &plan.Pod{Pod: kube.Pod{Namespace: namespace, Name: name, Node: node}}
	}
	pods := []*plan.Pod{pod("web", "a", "win1"), pod("default", "b", "win1"), pod("default", "a", "win2")}
	c := &Cluster{Cluster: &cluster.Cluster{Plan: &plan.Plan{Pods: pods}}}
	for _, tc := range []struct {
		end, node string
		want      bool
	}{
		{"pod/web/a:80", "win1", true}, {"pod/web/a:80", "win2", false},
		{"pod/b", "win1", true}, {"pod/a", "win1", false}, {"pod/a", "win2", true},
		{"node/win1", "win1", true}, {"node/win1", "win2", false},
		{"svc/web/a", "win1", false}, {"10.0.0.1:80", "win1", false},
	} {
		e, err := readEnds(tc.end, tc.end)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.endOn(e.to, tc.node); got != tc.want {
			t.Errorf("endOn(%s, %s) = %v, want %v", tc.end, tc.node, got, tc.want)
		}
	}
	if _, err := readEnds("pod/a", "pod/"); err == nil {
		t.Error("pod/ is read as an end")
	}
}
