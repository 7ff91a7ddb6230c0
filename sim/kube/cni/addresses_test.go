package cni

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
)

func TestAddresses(t *testing.T) {
	c := cluster(false, "10.0.17763.1432")
	n := c.Node("win1")
	for _, name := range []string{"flannel-host-gw", "flannel-vxlan"} {
		t.Run(name, func(t *testing.T) {
			o := plugins(t)[name]
			o.Reserved = []netip.Addr{addr("10.244.1.4")}
			p := mustNew(t, o)
			s := service(n)
			if _, err := p.Prepare(c, n, s); err != nil {
				t.Fatal(err)
			}
			add := func(name, want string) (string, error) {
				pod := &kube.Pod{Namespace: "test", Name: name}
				if want != "" {
					pod.Address = addr(want)
				}
				r, err := p.Add(c, n, pod, s)
				if err != nil {
					return "", err
				}
				return r.Addresses[0].Addr().String(), nil
			}
			for _, tc := range []struct{ pod, want, got string }{
				{"a", "", "10.244.1.3"}, {"b", "10.244.1.6", "10.244.1.6"}, {"c", "", "10.244.1.5"}, {"d", "", "10.244.1.7"},
			} {
				if got, err := add(tc.pod, tc.want); got != tc.got {
					t.Errorf("pod %s has %s, want %s (%v)", tc.pod, got, tc.got, err)
				}
			}
			for addr, want := range map[string]string{
				"10.244.1.3": "taken by test/a", "10.244.1.1": "the gateway", "10.244.1.2": "the node's endpoint", "10.244.1.4": "reserved",
				"10.244.2.9": "not available in range set 10.244.1.1-10.244.1.254", "10.244.1.255": "first or last",
			} {
				_, err := add("x", addr)
				wantAll(t, err, "test/x", addr, want)
			}
			for i := 8; i <= 254; i++ {
				if _, err := add(fmt.Sprint("p", i), ""); err != nil {
					t.Fatal(err)
				}
			}
			_, err := add("last", "")
			wantAll(t, err, "no IP addresses available in range set: 10.244.1.1-10.244.1.254", "win1")
		})
	}
}

func TestAzureAddresses(t *testing.T) {
	c := cluster(true, "10.0.17763.1432")
	p := mustNew(t, plugins(t)["azure-l2bridge"])
	lease := func(node, pod, want string) (string, error) {
		kp := &kube.Pod{Name: pod}
		if want != "" {
			kp.Address = addr(want)
		}
		l, err := p.Lease(c, c.Node(node), kp)
		return l.Prefix.Addr().String(), err
	}
	for _, tc := range []struct{ node, pod, want, got string }{
		{"linux1", "a", "", "10.240.0.5"}, {"win1", "b", "", "10.240.0.11"}, {"win2", "c", "", "10.240.0.41"},
		{"win1", "b", "", "10.240.0.11"}, {"win1", "d", "10.240.3.9", "10.240.3.9"},
	} {
		if got, err := lease(tc.node, tc.pod, tc.want); got != tc.got {
			t.Errorf("pod %s on %s has %s, want %s (%v)", tc.pod, tc.node, got, tc.got, err)
		}
	}
	for a, want := range map[string]string{"10.240.3.9": "default/d", "10.240.0.1": "the gateway", "10.240.0.4": "node linux1"} {
		_, err := lease("win2", "e", a)
		wantAll(t, err, want)
	}
	// linux1 has thirty: behind win1's own address and the one that win1 gave out it
	// goes on.
	want := addr("10.240.0.6")
	for i := range 28 {
		for want == addr("10.240.0.10") || want == addr("10.240.0.11") {
			want = want.Next()
		}
		if got, err := lease("linux1", fmt.Sprint("f", i), ""); err != nil || got != want.String() {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
		want = want.Next()
	}
	_, err := lease("linux1", "g", "")
	wantAll(t, err, "10.240.0.5-10.240.0.35")
}
