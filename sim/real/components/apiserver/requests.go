package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
)

// maxBody is the most that a client may send: events are small.
const maxBody = 1 << 20

// request is one request about a resource.
type request struct {
	resource        *resource
	namespace, name string
}

// parse reads /api/v1/namespaces/NS/services/NAME and the like.
func parse(path string) (*request, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var group, version string
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, false
	}
	q := &request{}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) < 1 || len(parts) > 2 {
		return nil, false
	}
	if len(parts) == 2 {
		q.name = parts[1]
	}
	q.resource = find(group, version, parts[0])
	return q, q.resource != nil && q.fits()
}

// find returns a resource, or nil.
func find(group, version, plural string) *resource {
	for _, r := range resources {
		if r.group == group && r.version == version && r.plural == plural {
			return r
		}
	}
	return nil
}

// fits reports whether a request names a namespace where its resource has one: for one
// object always, for all of them or not.
func (q *request) fits() bool {
	if q.namespace == "" {
		return q.name == "" || !q.resource.namespaced
	}
	return q.resource.namespaced
}

func (s *Server) serve(w http.ResponseWriter, h *http.Request) {
	err := s.answer(w, h)
	if err == nil {
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	st := status.Status()
	if h.Context().Err() == nil {
		s.log.Printf("%s %s: %d %s", h.Method, h.URL, st.Code, st.Message)
	}
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.write(w, int(st.Code), &st)
}

func (s *Server) answer(w http.ResponseWriter, h *http.Request) error {
	if !acceptsJSON(h.Header.Values("Accept")) {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotAcceptable,
			Reason:  metav1.StatusReasonNotAcceptable,
			Message: "only application/json is supported"}}
	}
	switch h.URL.Path {
	case "/version":
		s.write(w, http.StatusOK, &version.Info{Major: "1", Minor: "0", GitVersion: "v1.0.0-winlab"})
		return nil
	case "/healthz", "/livez", "/readyz":
		_, err := io.WriteString(w, "ok")
		return err
	}
	q, ok := parse(h.URL.Path)
	if !ok {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, h.Method, schema.GroupResource{}, "", h.URL.Path+" is not served", 0, true)
	}
	return s.answerAbout(q, w, h)
}

// answerAbout answers a request about a resource.
func (s *Server) answerAbout(q *request, w http.ResponseWriter, h *http.Request) error {
	switch {
	case h.Method == http.MethodGet && q.name != "":
		o := s.store.get(q.resource, q.namespace, q.name)
		if o == nil {
			return apierrors.NewNotFound(q.resource.groupResource(), q.name)
		}
		s.write(w, http.StatusOK, q.resource.typed(o))
		return nil
	case h.Method == http.MethodGet:
		return s.collection(w, h, q)
	case h.Method == http.MethodPost && q.name == "" && q.namespace != "" && q.resource.create:
		return s.create(w, h, q)
	case h.Method == http.MethodPatch && q.name != "" && q.resource.create:
		return s.patch(w, h, q)
	}
	return apierrors.NewMethodNotSupported(q.resource.groupResource(), strings.ToLower(h.Method))
}

// acceptsJSON: kube-proxy asks for protobuf but takes anything
// ("application/vnd.kubernetes.protobuf,*/*" or with application/json after it).
func acceptsJSON(accept []string) bool {
	all := strings.Join(accept, ",")
	if strings.TrimSpace(all) == "" {
		return true
	}
	for part := range strings.SplitSeq(all, ",") {
		media, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		switch strings.TrimSpace(media) {
		case "*/*", "application/*":
			return true
		case "application/json":
			if !strings.Contains(params, "as=") { // a table, or metadata only
				return true
			}
		}
	}
	return false
}

// options reads the query of a list or watch.
func options(h *http.Request, q *request) (*metav1.ListOptions, *selection, error) {
	o := &metav1.ListOptions{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(ptr(h.URL.Query()), o, nil); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	sel := &selection{resource: q.resource, namespace: q.namespace}
	var err1, err2 error
	sel.labels, err1 = labels.Parse(o.LabelSelector)
	sel.fields, err2 = fields.ParseSelector(o.FieldSelector)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	known := q.resource.fieldsOf(q.resource.empty())
	for _, r := range sel.fields.Requirements() {
		if _, ok := known[r.Field]; !ok {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return o, sel, nil
}

func ptr[T any](v T) *T { return &v }

// empty returns a new object of the stored type.
func (r *resource) empty() runtime.Object {
	v := r.version
	if r.of != "" {
		v = "v1"
	}
	o, err := scheme().New(schema.GroupVersionKind{Group: r.group, Version: v, Kind: r.kind})
	if err != nil {
		panic(err) // the table of resources and the scheme are of this package
	}
	return o
}

func (s *Server) collection(w http.ResponseWriter, h *http.Request, q *request) error {
	o, sel, err := options(h, q)
	if err != nil {
		return err
	}
	if o.Watch {
		return s.watch(w, h, o, sel)
	}
	// Paging is optional for a server: everything is sent at once. Any version
	// that was asked for is older than now, so the current one serves all of
	// them.
	objects, version := s.store.list(sel)
	items := make([]runtime.Object, len(objects))
	for i, o := range objects {
		items[i] = q.resource.typed(o)
	}
	s.write(w, http.StatusOK, &list{TypeMeta: metav1.TypeMeta{Kind: q.resource.kind + "List", APIVersion: q.resource.groupVersion()},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}, Items: items})
	s.markSent(q.resource)
	return nil
}

// list is a list of any kind, as JSON.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []runtime.Object `json:"items"`
}

// create takes an event.
func (s *Server) create(w http.ResponseWriter, h *http.Request, q *request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, h.Body, maxBody))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	// JSON or protobuf, by the first bytes.
	o, kind, err := codecs().UniversalDeserializer().Decode(body,
		&schema.GroupVersionKind{Group: q.resource.group, Version: q.resource.version, Kind: q.resource.kind}, nil)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	m, err := meta.Accessor(o)
	if err != nil || kind.Kind != q.resource.kind || kind.Group != q.resource.group {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %s", kind))
	}
	if m.GetNamespace() == "" {
		m.SetNamespace(q.namespace)
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		_, v := s.store.list(&selection{resource: q.resource, labels: labels.Nothing(), fields: fields.Everything()})
		m.SetName(fmt.Sprintf("%s%d", m.GetGenerateName(), v))
	}
	if m.GetNamespace() != q.namespace {
		return apierrors.NewBadRequest("the namespace of the object is not that of the request")
	}
	if s.store.get(q.resource, q.namespace, m.GetName()) != nil {
		return apierrors.NewAlreadyExists(q.resource.groupResource(), m.GetName())
	}
	if o, err = s.store.put(o); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	s.write(w, http.StatusCreated, q.resource.typed(o))
	return nil
}

// patch changes an event, which client-go does to count it once more.
func (s *Server) patch(w http.ResponseWriter, h *http.Request, q *request) error {
	old := s.store.get(q.resource, q.namespace, q.name)
	if old == nil {
		return apierrors.NewNotFound(q.resource.groupResource(), q.name)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, h.Body, maxBody))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	switch t := types.PatchType(strings.TrimSpace(h.Header.Get("Content-Type"))); t {
	case types.StrategicMergePatchType, types.MergePatchType:
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
			Reason: metav1.StatusReasonUnsupportedMediaType, Message: fmt.Sprintf("patches of type %q are not supported", t)}}
	}
	// An event has no list that is merged by a key, so both kinds of patch mean
	// the same.
	var was, with map[string]any
	text, err := json.Marshal(old)
	if err == nil {
		err = json.Unmarshal(text, &was)
	}
	if err == nil {
		err = json.Unmarshal(body, &with)
	}
	if err == nil {
		text, err = json.Marshal(merge(was, with))
	}
	o := q.resource.empty()
	if err == nil {
		err = json.Unmarshal(text, o)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if m, err := meta.Accessor(o); err != nil || m.GetName() != q.name || m.GetNamespace() != q.namespace {
		return apierrors.NewBadRequest("a patch cannot rename an object")
	}
	if o, err = s.store.put(o); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	s.write(w, http.StatusOK, q.resource.typed(o))
	return nil
}

// merge is the merge patch of RFC 7386.
func merge(to, patch map[string]any) map[string]any {
	if to == nil {
		to = map[string]any{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(to, k)
		case map[string]any:
			old, _ := to[k].(map[string]any)
			to[k] = merge(old, v)
		default:
			to[k] = v
		}
	}
	return to
}

func (s *Server) write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.log.Printf("an answer was not sent: %v", err)
	}
}
