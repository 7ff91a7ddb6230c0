package lab_test

import (
	"context"
	"fmt"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// A lab from a file, and one flow through it.
func Example() {
	ctx := context.Background()
	f, err := lab.Load("../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := lab.Build(ctx, f, lab.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := c.Trace(ctx, lab.Request{From: "pod/client", To: "host/internet", Protocol: "ping"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Verdict, t.Reason)
	// Output: no-reply icmp-not-translated
}

// cluster is a lab that is made in Go: two Windows nodes with win-bridge and a pod
// on each. A test of a plugin puts its own configuration file here.
func cluster(ctx context.Context) (*lab.Cluster, error) {
	f, err := lab.New("two-nodes", labfile.Spec{
		Kubernetes: "1.36",
		Network:    labfile.Network{Plugin: "win-bridge", Conf: "../../fixtures/cni/win-bridge.conf"},
		Nodes: []labfile.Node{
			{Name: "win1", Build: "10.0.20348.2762", Routes: []labfile.Route{{To: "10.244.1.0/24", Via: "192.168.1.11"}}},
			{Name: "win2", Build: "10.0.20348.2762", Routes: []labfile.Route{{To: "10.244.0.0/24", Via: "192.168.1.10"}}},
		},
		Pods: []labfile.Pod{{Name: "client", Node: "win1"}, {Name: "web", Node: "win2", Listen: []string{"tcp/80"}}},
		DNS:  labfile.DNS{Off: true},
	})
	if err != nil {
		return nil, err
	}
	return lab.Build(ctx, f, lab.Options{})
}

// A lab that is made in Go, without a file.
func ExampleNew() {
	ctx := context.Background()
	c, err := cluster(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := c.Trace(ctx, lab.Request{From: "pod/client", To: "pod/web:80"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Summary)
	// Output: Delivered; win2 saw the source 10.244.0.3.
}

// A plugin's call to HNS, made in Go, and what the next packet meets.
func ExampleCluster() {
	ctx := context.Background()
	c, err := cluster(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	block := hns.NewPolicy(hns.ACLSettings{Action: "Block", Direction: "In", Priority: 100, Protocols: "6", LocalPorts: "80"})
	if err := c.HNS("win2").AddEndpointPolicies(c.PodEndpoint("web"), block); err != nil {
		fmt.Println(err)
		return
	}
	t, err := c.Trace(ctx, lab.Request{From: "pod/client", To: "pod/web:80"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range t.Paths[0].Steps {
		if s.Action == trace.ActDrop {
			fmt.Println(t.Verdict, "on", s.Place, "in", s.Layer)
		}
	}
	// Output: dropped on win2 in ACL_ENDPOINT_LAYER
}
