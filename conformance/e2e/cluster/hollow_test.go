package cluster

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/internal/dev/full"
)

func TestParseHollow(t *testing.T) {
	for text, want := range map[string]string{
		"300":                "300 of <nil>",
		"1:10.0.26100.1742":  "1 of 10.0.26100.1742",
		"7:2019":             "7 of 10.0.17763.",
		"0":                  "from 1 to 5000",
		"5001":               "from 1 to 5000",
		"many":               "write a number of nodes",
		":10.0.20348.2762":   "write a number of nodes",
		"3:10.0.99999.1":     "99999",
		"3:10.0.20348.2762:": "is not a Windows version",
	} {
		h, err := ParseHollow(text)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%d of <nil>", h.Count)
			if h.Build != nil {
				got = fmt.Sprintf("%d of %s", h.Count, h.Build.Version)
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestHollow: the scheduler puts pods on hollow nodes by the labels and taints that Windows
// nodes have, kwok lets them run, and both outlive a crash of kwok.
func TestHollow(t *testing.T) {
	full.Only(t, "")
	const all, newer, pods = 30, 10, 120
	h, err := ParseHollow(fmt.Sprintf("%d:10.0.26100.1742", newer))
	if err != nil {
		t.Fatal(err)
	}
	c := upOn(t, "testdata/lab.yaml", func(o *Options) {
		if _, err := o.Programs.Path(kwok); err != nil {
			t.Skip("kwok is not built: make cluster-binaries")
		}
		o.Runtime, o.Hollow = stubRuntime, []Hollow{{Count: all - newer}, h}
	})
	deployment := func(name string, replicas int32, tolerations ...corev1.Toleration) {
		t.Helper()
		labels := map[string]string{"app": name}
		_, err := c.Client.AppsV1().Deployments("default").Create(t.Context(),
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelOSStable: "windows", corev1.LabelWindowsBuild: "10.0.26100"}, Tolerations: tolerations,
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
						WhenUnsatisfiable: corev1.DoNotSchedule,
						LabelSelector:     &metav1.LabelSelector{MatchLabels: labels}}},
					Containers: []corev1.Container{{Name: "main", Image: "mcr.microsoft.com/windows/servercore/iis"}}}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	deployment("some", pods/2, corev1.Toleration{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule})
	running := func(want int) {
		t.Helper()
		waitFor(t, "pods run", func() error {
			l, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app!=untolerant"})
			if err != nil {
				return err
			}
			on, run := map[string]int{}, 0
			for _, p := range l.Items {
				if p.Status.Phase == corev1.PodRunning {
					run++
					on[p.Spec.NodeName]++
				}
			}
			if run != want || len(on) != newer {
				return fmt.Errorf("%d of %d pods run on %d of %d nodes", run, want, len(on), newer)
			}
			for node := range on {
				var n int
				if _, err := fmt.Sscanf(node, "hollow%d", &n); err != nil || n <= all-newer {
					t.Errorf("pods are on %s, which has another build", node)
				}
			}
			return nil
		})
	}
	running(pods / 2)
	deployment("untolerant", 1)
	// Taints are looked at before labels, so all of them count.
	waitFor(t, "the scheduler refuses a pod", func() error {
		l, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=untolerant"})
		if err != nil {
			return err
		}
		for _, p := range l.Items {
			for _, k := range p.Status.Conditions {
				if k.Type == corev1.PodScheduled && k.Status == corev1.ConditionFalse &&
					strings.Contains(k.Message, fmt.Sprintf("%d node(s) had untolerated taint", all)) {
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", l.Items)
	})
	hollowNodes(t, c, all)
	if err := c.Act(t.Context(), Kill, kwok); err != nil {
		t.Fatal(err)
	}
	deployment("more", pods/2, corev1.Toleration{Key: "os", Operator: corev1.TolerationOpExists})
	running(pods)
}

// hollowNodes: all hollow nodes are ready, and are shown as what they stand for.
func hollowNodes(t *testing.T, c *Cluster, all int) {
	t.Helper()
	nodes, err := c.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hollow := 0
	for _, n := range nodes {
		if n.Hollow {
			hollow++
			if n.Ready != "True" || !strings.HasPrefix(n.System, "Windows Server 20") || len(n.PodCIDRs) > 0 {
				t.Errorf("%+v", n)
			}
		}
	}
	if hollow != all {
		t.Errorf("%d of %d nodes are hollow", hollow, len(nodes))
	}
}
