package apiserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"

	corev1 "k8s.io/api/core/v1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const proxySelector = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name"

func start(t *testing.T, objects ...runtime.Object) *Server {
	t.Helper()
	s, err := Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Apply(objects...); err != nil {
		t.Fatal(err)
	}
	return s
}

func service(name string, labels map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1"}}
}

// do makes a request and returns the status and the body.
func do(t *testing.T, s *Server, method, path, contentType string, body []byte) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/vnd.kubernetes.protobuf,*/*") // as client-go
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: Content-Type %q", path, res.Header.Get("Content-Type"))
	}
	return res.StatusCode, string(text)
}

func TestRequests(t *testing.T) {
	s := start(t, NodeObject(&kube.Node{Name: "win1", Address: netip.MustParseAddr("192.168.1.11")}), NodeObject(&kube.Node{Name: "win2"}),
		service("web", nil), service("other", map[string]string{"service.kubernetes.io/service-proxy-name": "x"}))
	for _, c := range []struct {
		path string
		code int
		want string // part of the body; with ! in front, not part of it
	}{
		{"/api/v1/nodes/win1", 200, `"address":"192.168.1.11"`},
		{"/api/v1/nodes/win1", 200, `"kind":"Node","apiVersion":"v1"`},
		{"/api/v1/nodes/win3", 404, `nodes \"win3\" not found`},
		{"/api/v1/nodes?fieldSelector=metadata.name%3Dwin2", 200, `!"name":"win1"`},
		{"/api/v1/nodes?fieldSelector=metadata.name%3Dwin2", 200, `"name":"win2"`},
		{"/api/v1/nodes?fieldSelector=spec.providerID%3Dx", 400, "field label not supported: spec.providerID"},
		{"/api/v1/services?labelSelector=" + url.QueryEscape(proxySelector), 200, `"name":"web"`},
		{"/api/v1/services?labelSelector=" + url.QueryEscape(proxySelector), 200, `!"name":"other"`},
		{"/api/v1/services?fieldSelector=spec.clusterIP%21%3DNone", 200, `"name":"web"`},
		{"/api/v1/services?labelSelector=%21%21", 400, "BadRequest"},
		{"/api/v1/namespaces/default/services/web", 200, `"clusterIP":"10.96.0.1"`},
		{"/api/v1/namespaces/kube-system/services", 200, `"items":[]`},
		{"/api/v1/services", 200, `"kind":"ServiceList"`},
		{"/apis/networking.k8s.io/v1/servicecidrs", 200, `"items":[]`},
		{"/apis/apps/v1/deployments", 404, "is not served"},
		{"/api/v1/services/web", 404, "is not served"},
		{"/api/v1/services?watch=1&resourceVersion=x", 400, "is not one of this server"},
		{"/version", 200, `"major":"1"`},
	} {
		code, body := do(t, s, http.MethodGet, c.path, "", nil)
		want, not := strings.CutPrefix(c.want, "!")
		if code != c.code || strings.Contains(body, want) == not {
			t.Errorf("%s: %d, want %d with %s: %s", c.path, code, c.code, c.want, body)
		}
	}
	if code, body := do(t, s, http.MethodPost, "/api/v1/namespaces/default/services", "application/json", []byte("{}")); code != 405 ||
		!strings.Contains(body, "MethodNotAllowed") {
		t.Errorf("a Service was made by a client: %d %s", code, body)
	}
	if s.Sent("services").IsZero() || !s.Sent("endpoints").IsZero() {
		t.Errorf("services were sent %v, endpoints %v", s.Sent("services"), s.Sent("endpoints"))
	}
}

func TestNoOtherFormat(t *testing.T) {
	for accept, want := range map[string]bool{"": true, "application/json": true, "*/*": true,
		"application/vnd.kubernetes.protobuf,application/json": true,
		"application/vnd.kubernetes.protobuf":                  false, "application/json;as=Table;v=v1;g=meta.k8s.io": false} {
		if acceptsJSON([]string{accept}) != want {
			t.Errorf("Accept %q: want %t", accept, want)
		}
	}
}

// open begins a watch and returns what reads its next event: "ADDED web".
func open(t *testing.T, s *Server, path string) func() string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewReader(res.Body)
	return func() string {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err.Error()
		}
		var e struct {
			Type   string
			Object struct {
				Metadata metav1.ObjectMeta
				Code     int
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Object.Metadata.ResourceVersion == "" && e.Type != "ERROR" {
			t.Errorf("no version: %s", line)
		}
		if e.Type == "BOOKMARK" {
			return e.Type + " " + e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey]
		}
		return e.Type + " " + e.Object.Metadata.Name
	}
}

func TestWatch(t *testing.T) {
	s := start(t, service("web", nil))
	next := open(t, s,
		"/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector="+
			url.QueryEscape(proxySelector))
	want := func(event string) {
		t.Helper()
		if got := next(); got != event {
			t.Errorf("%s, want %s", got, event)
		}
	}
	want("ADDED web")
	want("BOOKMARK true")
	headless := map[string]string{corev1.IsHeadlessService: ""}
	for _, o := range []runtime.Object{service("a", nil), service("hidden", headless), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		service("a", nil), service("a", headless)} {
		if err := s.Apply(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.remove(service("hidden", nil), service("web", nil)); err != nil {
		t.Fatal(err)
	}
	want("ADDED a")
	want("MODIFIED a")
	want("DELETED a") // it no longer matches
	want("DELETED web")

	// A list's version and a watch from there fit together.
	_, body := do(t, s, http.MethodGet, "/api/v1/services", "", nil)
	var l struct{ Metadata metav1.ListMeta }
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(service("late", nil)); err != nil {
		t.Fatal(err)
	}
	next = open(t, s, "/api/v1/services?watch=true&resourceVersion="+l.Metadata.ResourceVersion)
	want("ADDED late")
	next = open(t, s, "/api/v1/services?watch=true&timeoutSeconds=1&resourceVersion=99")
	want("EOF")
}

func TestForgottenVersions(t *testing.T) {
	s := start(t, service("web", nil))
	for range historyLimit + 1 {
		if err := s.Apply(service("web", nil)); err != nil {
			t.Fatal(err)
		}
	}
	if code, body := do(t, s, http.MethodGet, "/api/v1/services?watch=true&resourceVersion=2", "", nil); code != 410 ||
		!strings.Contains(body, "Expired") {
		t.Errorf("%d %s", code, body)
	}
}

func TestEvents(t *testing.T) {
	s := start(t)
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "win1.1"}, Reason: "Starting", Count: 1}
	info, ok := runtime.SerializerInfoForMediaType(codecs().SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no protobuf")
	}
	var b bytes.Buffer
	if err := codecs().EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"}).Encode(e, &b); err != nil {
		t.Fatal(err)
	}
	const all = "/api/v1/namespaces/default/events"
	for _, c := range []struct {
		method, path, kind string
		body               []byte
		code               int
	}{
		{http.MethodPost, all, runtime.ContentTypeProtobuf, b.Bytes(), 201},
		{http.MethodPost, all, runtime.ContentTypeProtobuf, b.Bytes(), 409},
		{http.MethodPatch, all + "/win1.1", "application/strategic-merge-patch+json", []byte(`{"count":2,"metadata":{"labels":{"a":null}}}`),
			200},
		{http.MethodPatch, all + "/win1.1", "application/json-patch+json", []byte(`[]`), 415},
		{http.MethodPatch, all + "/win1.1", "application/merge-patch+json", []byte(`{`), 400},
		{http.MethodPatch, all + "/win1.1", "application/merge-patch+json", []byte(`{"metadata":{"name":"x"}}`), 400},
		{http.MethodPatch, all + "/none", "application/merge-patch+json", []byte(`{}`), 404},
		{http.MethodPost, all, "application/json", []byte(`{"kind":"Service","apiVersion":"v1"}`), 400},
		{http.MethodPost, all, "application/json", []byte(`nonsense`), 400},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/default/events", "application/json",
			[]byte(`{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"generateName":"x"}}`), 201},
	} {
		if code, body := do(t, s, c.method, c.path, c.kind, c.body); code != c.code {
			t.Errorf("%s %s %s: %d, want %d: %s", c.method, c.path, c.kind, code, c.code, body)
		}
	}
	if _, body := do(t, s, http.MethodGet, all+"/win1.1", "", nil); !strings.Contains(body, `"count":2`) ||
		!strings.Contains(body, "Starting") {
		t.Errorf("%s", body)
	}
}

func TestServiceObjects(t *testing.T) {
	s := start(t)
	web := &kube.Service{Namespace: "default", Name: "web", Type: "NodePort", ExternalLocal: true,
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
		Ports:      []kube.ServicePort{{Name: "http", Proto: packet.TCP, Port: 80, NodePort: 30080}},
		Endpoints: []kube.Endpoint{
			{Addr: netip.MustParseAddr("10.244.1.5"), Node: "win1", Ready: true, Serving: true, Ports: map[string]uint16{"http": 8080}},
			{Addr: netip.MustParseAddr("10.244.2.5"), Node: "win2", Ready: true, Serving: true, Ports: map[string]uint16{"http": 9090}}}}
	if err := s.SetServices([]*kube.Service{web}); err != nil {
		t.Fatal(err)
	}
	slices := "/apis/discovery.k8s.io/v1/endpointslices"
	if _, body := do(t, s, http.MethodGet, slices, "", nil); strings.Count(body, `"addressType":"IPv4"`) != 2 ||
		!strings.Contains(body, `"port":9090`) {
		t.Errorf("want a slice for each set of ports: %s", body)
	}
	_, body := do(t, s, http.MethodGet, "/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices/web-ipv4-1", "", nil)
	var old discoveryv1beta1.EndpointSlice
	if err := json.Unmarshal([]byte(body), &old); err != nil || old.APIVersion != "discovery.k8s.io/v1beta1" ||
		old.Endpoints[0].Topology[corev1.LabelHostname] != "win1" {
		t.Errorf("%v: %s", err, body)
	}
	if _, body := do(t, s, http.MethodGet, "/api/v1/endpoints", "", nil); !strings.Contains(body, `"nodeName":"win2"`) {
		t.Errorf("%s", body)
	}
	version := s.store.version
	if err := s.SetServices([]*kube.Service{web}); err != nil || s.store.version != version {
		t.Errorf("nothing has changed, but the version went from %d to %d, error %v", version, s.store.version, err)
	}
	web.Endpoints = web.Endpoints[:1]
	if err := s.SetServices([]*kube.Service{web}); err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, s, http.MethodGet, slices, "", nil); strings.Contains(body, "9090") {
		t.Errorf("the second slice is still there: %s", body)
	}
	if err := s.SetServices(nil); err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, s, http.MethodGet, "/api/v1/services", "", nil); !strings.Contains(body, `"items":[]`) {
		t.Errorf("%s", body)
	}
	if err := s.remove(service("web", nil)); err == nil {
		t.Error("deleted a Service that is not there")
	}
}

// What kube-proxy sees of a change: it reads Endpoints or EndpointSlices, and nothing of
// Services without an address.
func TestWatched(t *testing.T) {
	addr := netip.MustParseAddr
	service := func(name string, headless bool, endpoints ...kube.Endpoint) *kube.Service {
		s := &kube.Service{Namespace: "default", Name: name, Type: kube.ClusterIP, Headless: headless, Endpoints: endpoints,
			Ports: []kube.ServicePort{{Proto: packet.TCP, Port: 80, Target: 80}}}
		if !headless {
			s.ClusterIPs = []netip.Addr{addr("10.96.0.10")}
		}
		return s
	}
	pod := kube.Endpoint{Addr: addr("10.244.1.5"), Node: "win1", Ready: true, Serving: true}
	leaves := kube.Endpoint{Addr: addr("10.244.1.6"), Node: "win1", Terminating: true}
	external := &kube.Service{Namespace: "default", Name: "e", Type: kube.ExternalName, ExternalName: "example.org"}
	before := []*kube.Service{service("web", false, pod), service("db", true, pod)}
	for _, c := range []struct {
		name, reads string
		after       []*kube.Service
		watched     bool
	}{
		{"nothing", "endpoints", before, false},
		{"one without endpoints", "endpoints", []*kube.Service{service("web", false), before[1]}, true},
		{"one that is gone", "endpoints", before[1:], true},
		{"a headless one", "endpoints", []*kube.Service{before[0], service("db", true)}, false},
		{"a headless one that is gone", "endpoints", before[:1], false},
		{"a name outside", "endpoints", []*kube.Service{before[0], before[1], external}, false},
		{"one that leaves, in Endpoints", "endpoints", []*kube.Service{service("web", false, pod, leaves), before[1]}, false},
		{"one that leaves, in slices", slicesResource, []*kube.Service{service("web", false, pod, leaves), before[1]}, true},
	} {
		s := start(t)
		if err := s.SetServices(before); err != nil {
			t.Fatal(err)
		}
		for _, r := range resources {
			if r.name() == c.reads || r.name() == "services" {
				s.markSent(r)
			}
		}
		if watched, err := s.ChangeServices(c.after); err != nil || watched != c.watched {
			t.Errorf("%s: watched %v, error %v", c.name, watched, err)
		}
	}
}
