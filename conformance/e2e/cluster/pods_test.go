package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/conformance/e2e/cri/node"
)

// upWithPods brings a cluster up whose nodes have the real runtime.
func upWithPods(t *testing.T, path string) *Cluster {
	t.Helper()
	return upOn(t, path, func(o *Options) {
		p := o.Programs
		o.Runtime = func(ctx context.Context, n Node) (Runtime, error) {
			return node.Start(ctx, node.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir,
				Programs: func(_ context.Context, name string) (string, error) { return p.Path(name) }})
		}
	})
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// pods: with a real runtime pods of both systems get their volumes, run, answer at their
// addresses, are measured, and go.
func pods(t *testing.T, c *Cluster) {
	t.Helper()
	core := c.Client.CoreV1()
	if _, err := core.ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "say"}, Data: map[string]string{"word": "one"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"linux", "windows"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: system}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelOSStable: system},
			Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/e2e-test-images/agnhost:2.53",
				Args:         []string{"netexec", "--http-port=8080"},
				VolumeMounts: []corev1.VolumeMount{{Name: "say", MountPath: "/say"}}}},
			Volumes: []corev1.Volume{{Name: "say", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "say"}}}}},
		}}
		if _, err := core.Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The API server connects to the pod's own address.
	ask := func(pod, path, want string) {
		t.Helper()
		waitFor(t, path+" of "+pod, func() error {
			b, err := core.RESTClient().Get().AbsPath("/api/v1/namespaces/default/pods", pod+":8080", "proxy", path).DoRaw(t.Context())
			if err == nil && string(b) != want {
				err = fmt.Errorf("it says %q, want %q", b, want)
			}
			return err
		})
	}
	for _, pod := range []string{"linux", "windows"} {
		ask(pod, "hostname", pod)
	}
	metrics(t, c)
	for _, pod := range []string{"linux", "windows"} {
		if err := core.Pods("default").Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end of "+pod, func() error {
			if _, err := core.Pods("default").Get(t.Context(), pod, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is still there (error %v)", err)
			}
			return nil
		})
	}
}

// metrics: the metrics server has nodes and pods of both systems, each with CPU and memory.
func metrics(t *testing.T, c *Cluster) {
	t.Helper()
	if _, err := c.o.Programs.Path("metrics-server"); err != nil {
		t.Log("not measured, as metrics-server is not built: make cluster-binaries")
		return
	}
	type usage struct{ CPU, Memory resource.Quantity }
	for path, want := range map[string][]string{"nodes": {"linux1", "win1"}, "namespaces/default/pods": {"linux", "windows"}} {
		waitFor(t, "the metrics of "+path, func() error {
			b, err := c.Client.RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/" + path).DoRaw(t.Context())
			if err != nil {
				return err
			}
			var list struct {
				Items []struct {
					Metadata   metav1.ObjectMeta
					Usage      usage
					Containers []struct{ Usage usage }
				}
			}
			if err := json.Unmarshal(b, &list); err != nil {
				return err
			}
			var have []string
			for _, i := range list.Items {
				for _, c := range i.Containers {
					i.Usage = c.Usage
				}
				if i.Usage.Memory.Value() > 1<<20 && i.Usage.CPU.Sign() > 0 {
					have = append(have, i.Metadata.Name)
				}
			}
			if slices.Sort(have); !slices.Equal(have, want) {
				return fmt.Errorf("there are those of %v in %s", have, b)
			}
			return nil
		})
	}
}
