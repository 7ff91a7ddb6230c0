package labfile

import (
	"strings"
	"testing"
)

// FuzzTarget checks that what ParseTarget accepts is also read completely.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"pod/client", "pod/kube-system/coredns-0:53", "svc/web:80", "service/a/b:1", "node/win1:30080",
		"host/internet:443",
		"name/kubernetes.default:443", "localhost:80", "10.244.1.4", "10.244.1.4:80", "[fd00::1]:80", "fd00::1", "[::1]", "", "/", ":", "pod/",
		"pod/:0", "a/b/c/d:65536"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		to, err := ParseTarget(s)
		if err != nil {
			return
		}
		if to.String() != s {
			t.Errorf("%q says it is %q", s, to)
		}
		switch to.Kind {
		case AddressTarget, LocalhostTarget:
			if !to.Addr.IsValid() || to.Name != "" {
				t.Errorf("%q: %+v", s, to)
			}
		case PodTarget, ServiceTarget:
			if to.Namespace == "" || to.Name == "" {
				t.Errorf("%q: %+v", s, to)
			}
		case NodeTarget, HostTarget, NameTarget:
			if to.Namespace != "" || to.Name == "" {
				t.Errorf("%q: %+v", s, to)
			}
		default:
			t.Errorf("%q has the kind %q", s, to.Kind)
		}
		if to.Kind != AddressTarget && strings.ContainsAny(to.Name, "/") {
			t.Errorf("%q: a slash in the name %q", s, to.Name)
		}
	})
}
