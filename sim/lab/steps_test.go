package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The flows of testdata/story.yaml say what each of its steps does; here they are
// judged one after the other, in the opposite order, and by a cluster of their own.
func TestStory(t *testing.T) {
	t.Parallel()
	f, err := Load("testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	flows := f.Lab.Spec.AllFlows()
	first := map[int]string{}
	judge := func(c *Cluster, fl Flow) {
		t.Helper()
		o, err := c.Run(t.Context(), fl)
		if err != nil {
			t.Errorf("%s, %s: %v", fl.At, fl.Name, err)
			return
		}
		if !o.Pass {
			t.Errorf("%s, %s: %s\n%s", fl.At, fl.Name, o.Why, pathsOf(o))
		}
		if o.Trace == nil {
			return
		}
		if got := o.Trace.Lab.Step; got != fl.At {
			t.Errorf("%s, %s: the trace is of step %q", fl.At, fl.Name, got)
		}
		data, err := o.Trace.MarshalIndent()
		if err != nil {
			t.Fatal(err)
		}
		if was, ok := first[fl.Number]; ok && was != string(data) {
			t.Errorf("%s, %s says something else the second time: %s", fl.At, fl.Name, firstDifference(was, string(data)))
		}
		first[fl.Number] = string(data)
	}
	for _, fl := range flows {
		judge(c, fl)
	}
	for _, fl := range slices.Backward(flows) {
		judge(c, fl)
	}
}

// A NAT forgets connections with time, also on the path of a lab's connections.
func TestIdle(t *testing.T) {
	t.Parallel()
	f, err := Load("testdata/idle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fl := range f.Lab.Spec.AllFlows() {
		if o, err := c.Run(t.Context(), fl); err != nil || !o.Pass {
			t.Errorf("%s, %s: %v %s\n%s", fl.At, fl.Name, err, o.Why, pathsOf(o))
		}
	}
}

// inStory builds the story with another end.
func inStory(t *testing.T, steps ...labfile.Step) *Cluster {
	t.Helper()
	f, err := Load("testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.Lab.Spec.Steps = steps
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A step that cannot be done names itself; what was before it can still be asked.
func TestStepsThatFail(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name string
		step labfile.Step
		want string
	}{
		{"a call that should fail", labfile.Step{HNS: []HNSCall{{Node: "win1", Restart: true, Error: "0x803b0013"}}},
			"step bad: HNS call 1 on win1 succeeded, but should fail with 0x803b0013"},
		{"HNS where there is none", labfile.Step{Restart: []string{"hns/linux1"}}, "step bad: hns/linux1: the node has no HNS in this lab"},
	} {
		t.Run(s.name, func(t *testing.T) {
			s.step.Name = "bad"
			c := inStory(t, labfile.Step{Name: "good", Wait: "1s"}, s.step)
			err := c.GoTo(t.Context(), "bad")
			var undone *cluster.StepError
			if !errors.As(err, &undone) || undone.Step != "bad" || !strings.Contains(err.Error(), s.want) {
				t.Errorf("got %v\nwant %s", err, s.want)
			}
			if err := c.GoTo(t.Context(), "good"); err != nil {
				t.Error(err)
			}
			if tr, err := c.Trace(t.Context(), Request{From: "pod/client", To: "svc/web:80"}); err != nil || tr.Verdict != trace.Delivered {
				t.Errorf("before the step: %v, %v", err, tr)
			}
		})
	}
}

// What a step asks of something that is not there is found when the plan is made,
// with its line.
func TestStepsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ steps, want string }{
		"a pod that is gone": {`[{name: a, delete: [pod/client]}, {name: b, delete: [pod/client]}]`,
			"there is no pod default/client to delete at this time"},
		"a pod that moves": {`[{name: a, pods: [{name: client, node: win2}]}]`,
			"pod default/client already runs on win1; delete it first"},
		"a pod with another address": {`[{name: a, pods: [{name: client, address: 10.244.1.99}]}]`, "a pod does not change its address"},
		"more host ports":            {`[{name: a, pods: [{name: client, hostPorts: ["tcp/80:80"]}]}]`, "a pod does not change its host ports"},
		"a Service that is gone": {`[{name: a, delete: [svc/win-webserver]}, {name: b, delete: [svc/win-webserver]}]`,
			"there is no Service default/win-webserver to delete at this time"},
		"an object": {`[{name: a, objects: [{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {prots: []}}]}]`,
			`unknown field "prots"`},
	} {
		t.Run(name, func(t *testing.T) {
			f,
				err := Parse("testdata/x.yaml",
				[]byte(
					"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n  base: ../../../fixtures/labs/l2bridge-flannel-host-gw.yaml\n  steps: "+c.steps+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Build(t.Context(), f, Options{}); err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), "testdata/x.yaml:6:") {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// A node starts again in every design, and its pods are reached as before.
func TestNodesStartAgain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"l2bridge-azure-cni", "l2bridge-flannel-host-gw", "l2bridge-win-bridge-udr", "l2tunnel-azure-cni",
		"overlay-flannel-vxlan", "overlay-win-overlay", "nat-winnat", "ovs-l3", "transparent-ovn-kubernetes", "rras-l3"} {
		t.Run(name, func(t *testing.T) {
			for _, node := range []string{"win1", "linux1"} {
				f := design(t, name)
				f.Lab.Spec.Steps = []labfile.Step{{Name: "again", Restart: []string{"node/" + node}}}
				c, err := Build(t.Context(), f, Options{})
				if err != nil {
					t.Fatal(err)
				}
				requests := append(flows("pod/client", "pod/peer"), Request{From: "pod/client", To: "pod/neighbour:80"},
					Request{From: "pod/client", To: "svc/win-webserver:80"},
					Request{From: "pod/client", To: "host/internet:443"}, Request{From: "host/lan", To: "node/win1:30080"},
					Request{From: "node/win1", To: "pod/client:80"}, Request{From: "pod/linux-client", To: "svc/win-webserver:80"})
				var before []string
				say := func() (all []string) {
					for _, r := range requests {
						tr, err := c.Trace(t.Context(), r)
						if err != nil {
							t.Fatal(err)
						}
						all = append(all, r.From+" -> "+r.To+" "+r.Protocol+": "+string(tr.Verdict)+" "+string(tr.Reason))
					}
					return all
				}
				before = say()
				err = c.GoTo(t.Context(), "again")
				if name == "rras-l3" && node == "win1" {
					if err == nil || !strings.Contains(err.Error(), "how the network of plugin rras comes back on a Windows node is not modelled") {
						t.Error(err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", node, err)
					continue
				}
				if after := say(); !slices.Equal(before, after) {
					t.Errorf("%s:\n%s\nbecame\n%s", node, strings.Join(before, "\n"), strings.Join(after, "\n"))
				}
			}
		})
	}
}
