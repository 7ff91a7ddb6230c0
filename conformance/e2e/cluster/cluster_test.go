package cluster

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// TestCluster is all that one cluster shows while nothing fails.
func TestCluster(t *testing.T) {
	c := upWithPods(t, "testdata/lab.yaml")
	t.Run("nodes", func(t *testing.T) { nodes(t, c) })
	t.Run("services", func(t *testing.T) { servicesReached(t, c) })
	t.Run("pods", func(t *testing.T) { pods(t, c) })
}

// upOn brings a cluster up on a lab with what options say, and wants nothing to be left of
// it at the end.
func upOn(t *testing.T, path string, options func(*Options)) *Cluster {
	t.Helper()
	o := Options{Programs: need(t), Log: func(s string) { t.Log(s) }}
	f, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	o.Lab = f
	options(&o)
	c, err := Up(t.Context(), o)
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the files of the cluster are left: %v", err)
		}
	})
	return c
}

// nodes: the nodes are what the lab says, as the real kubelets report them, and the API
// server reaches these at their lab addresses.
func nodes(t *testing.T, c *Cluster) {
	t.Helper()
	for name, want := range map[string]struct{ address, ranges, image, kernel, build string }{
		"linux1": {"192.168.1.10", "10.244.0.0/24", "", "", ""},
		"win1":   {"192.168.1.11", "10.244.1.0/24", "Windows Server 2022 Datacenter", "10.0.20348.2762", "10.0.20348"},
	} {
		n, err := c.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		address := ""
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				address = a.Address
			}
		}
		i := n.Status.NodeInfo
		if address != want.address || strings.Join(n.Spec.PodCIDRs, ",") != want.ranges || i.KubeletVersion != "v1.37.0" {
			t.Errorf("%s: address %q, pod ranges %v, kubelet %s", name, address, n.Spec.PodCIDRs, i.KubeletVersion)
		}
		if want.build != "" && (i.OSImage != want.image || i.KernelVersion != want.kernel || n.Labels[corev1.LabelWindowsBuild] != want.build) {
			t.Errorf("%s: image %q, kernel %s, label %s", name, i.OSImage, i.KernelVersion, n.Labels[corev1.LabelWindowsBuild])
		}
		for path, says := range map[string]string{"healthz": "ok", "configz": `"kubeletconfig"`, "metrics": "kubelet_node_name"} {
			b, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", name, "proxy", path).DoRaw(t.Context())
			if err != nil || !strings.Contains(string(b), says) {
				t.Errorf("%s of %s: error %v, no %q", path, name, err, says)
			}
		}
	}
	for _, p := range c.Programs() {
		if p.PID == 0 {
			continue // a part of this process, without a log of its own
		}
		var log strings.Builder
		if err := c.WriteLog(&log, p.Name); p.Ended != "" || err != nil || log.Len() == 0 {
			t.Errorf("%+v has written %d bytes, error %v", p, log.Len(), err)
		}
	}
	if err := c.WriteLog(io.Discard, "kubelet/win9"); err == nil || !strings.Contains(err.Error(), "kubelet/win1") {
		t.Error(err)
	}
	fromOutside(t, c)
}

// fromOutside asks with a client that knows nothing of the lab.
func fromOutside(t *testing.T, c *Cluster) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dns, err := client.CoreV1().Services("kube-system").Get(t.Context(), "kube-dns", metav1.GetOptions{})
	if err != nil || dns.Spec.ClusterIP != "10.96.0.10" {
		t.Errorf("kube-dns is %v, error %v", dns.Spec.ClusterIP, err)
	}
}

// servicesReached: kube-proxy.exe and the model of a Linux node's follow the API server, as
// pods of both find: the Service kubernetes, and one with endpoints that somebody wrote.
func servicesReached(t *testing.T, c *Cluster) {
	t.Helper()
	https, port := "https", int32(443)
	web, err := c.Client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "internet"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: https, Port: 8080}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "internet-1", Labels: map[string]string{discoveryv1.LabelServiceName: "internet"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &https, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"203.0.113.10"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"win1", "linux1"} {
		p, err := c.Net.AddPod(t.Context(), live.Sandbox{Namespace: "default", Name: "on-" + node, Node: node})
		if err != nil {
			t.Fatal(err)
		}
		for name, to := range map[string]netip.AddrPort{"kubernetes": netip.MustParseAddrPort("10.96.0.1:443"),
			"internet": netip.AddrPortFrom(netip.MustParseAddr(web.Spec.ClusterIP), 8080)} {
			// Programs follow in their own time.
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for {
				conn, err := c.Net.Dial(ctx, p.Machine, "tcp", to, time.Second)
				if err == nil {
					_ = conn.Close()
					break
				}
				if ctx.Err() != nil {
					t.Errorf("%s does not reach Service %s: %v", p.Machine, name, err)
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
}
