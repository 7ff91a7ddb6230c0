package components

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A kube-proxy that makes no call is asked whether it syncs; where it does not answer, it
// has to be silent for longer.
func TestSilentIsNotSynced(t *testing.T) {
	const stack = "goroutine 7 [runnable]:\nk8s.io/kubernetes/pkg/proxy/winkernel.(*Proxier).syncProxyRules(0xc0001)\n\t/src/proxier.go:1200\n\n"
	for _, c := range []struct {
		name   string
		says   string
		code   int
		silent time.Duration
		want   bool
	}{
		{"in a sync", "goroutine 1 [select]:\nmain.main()\n\n" + stack, 200, time.Hour, true},
		{"in none", "goroutine 1 [select]:\nmain.main()\n\n", 200, time.Second, false},
		{"no answer, silent for a while", stack, 404, quietInPlace, true},
		{"no answer, silent for longer", stack, 404, quietInPlace + 1, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/debug/pprof/goroutine" {
				t.Errorf("%s is asked for", r.URL)
			}
			w.WriteHeader(c.code)
			_, _ = w.Write([]byte(c.says))
		}))
		k := &RunningKubeProxy{metrics: strings.TrimPrefix(s.URL, "http://")}
		if got := k.syncs(t.Context(), c.silent); got != c.want {
			t.Errorf("%s: it syncs: %v", c.name, got)
		}
		s.Close()
	}
}
