package apiserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// bookmarkEvery is how often a watch sends its version when nothing happens.
const bookmarkEvery = time.Minute

// event is one line of a watch.
type event struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// stream sends the events of one watch.
type stream struct {
	w    http.ResponseWriter
	json *json.Encoder
	sel  *selection
}

func (t *stream) send(kind watch.EventType, o any) error {
	if err := t.json.Encode(event{kind, o}); err != nil {
		return err
	}
	return http.NewResponseController(t.w).Flush()
}

// bookmark sends the version up to which the client has seen everything. end marks
// the end of the objects that a watch began with.
func (t *stream) bookmark(version uint64, end bool) error {
	o := t.sel.resource.typed(t.sel.resource.empty())
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	m.SetResourceVersion(strconv.FormatUint(version, 10))
	if end {
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return t.send(watch.Bookmark, o)
}

// watch streams changes until the client goes away, its time is over, or the server
// ends. It begins after the version that the client names; without one, or where
// the client asks for it (sendInitialEvents), with all objects that there are.
func (s *Server) watch(w http.ResponseWriter, h *http.Request, o *metav1.ListOptions, sel *selection) error {
	version, withAll, err := s.watchFrom(o)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	t := &stream{w: w, json: json.NewEncoder(w), sel: sel}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return nil
	}
	if withAll {
		if version, err = s.sendAll(t, o); err != nil {
			return nil // the client is gone
		}
		s.markSent(sel.resource)
	}
	s.follow(h, o, t, version)
	return nil
}

// watchFrom returns after which version a watch begins, or that it begins with all
// objects.
func (s *Server) watchFrom(o *metav1.ListOptions) (version uint64, withAll bool, err error) {
	if o.ResourceVersion != "" {
		if version, err = strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil {
			return 0, false, apierrors.NewBadRequest("resourceVersion " + strconv.Quote(o.ResourceVersion) + " is not one of this server")
		}
	}
	if initialEvents(o) && o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		return 0, false, apierrors.NewBadRequest("sendInitialEvents needs resourceVersionMatch=NotOlderThan")
	}
	if initialEvents(o) || o.SendInitialEvents == nil && version == 0 {
		return version, true, nil
	}
	if _, _, _, ok := s.store.changesSince(version); !ok {
		return 0, false, apierrors.NewResourceExpired("too old resource version: " + o.ResourceVersion)
	}
	return version, false, nil
}

func initialEvents(o *metav1.ListOptions) bool {
	return o.SendInitialEvents != nil && *o.SendInitialEvents
}

// sendAll sends all objects and returns the version that they lead to.
func (s *Server) sendAll(t *stream, o *metav1.ListOptions) (uint64, error) {
	objects, version := s.store.list(t.sel)
	for _, o := range objects {
		if err := t.send(watch.Added, t.sel.resource.typed(o)); err != nil {
			return 0, err
		}
	}
	if initialEvents(o) && o.AllowWatchBookmarks {
		return version, t.bookmark(version, true)
	}
	return version, nil
}

// follow sends changes. A client that has gone away is not an error.
func (s *Server) follow(h *http.Request, o *metav1.ListOptions, t *stream, version uint64) {
	var over <-chan time.Time
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		timer := time.NewTimer(time.Duration(*o.TimeoutSeconds) * time.Second)
		defer timer.Stop()
		over = timer.C
	}
	quiet := time.NewTicker(bookmarkEvery)
	defer quiet.Stop()
	for {
		changes, now, next, ok := s.store.changesSince(version)
		if !ok {
			_ = t.send(watch.Error, apierrors.NewResourceExpired("the watch is too slow: its changes are forgotten").Status())
			return
		}
		for _, c := range changes {
			kind, o := t.sel.event(c)
			if kind == "" {
				continue
			}
			s.markSent(t.sel.resource) // before the client can act on it
			if t.send(kind, t.sel.resource.typed(o)) != nil {
				return
			}
		}
		version = now
		select {
		case <-next:
		case <-quiet.C:
			if o.AllowWatchBookmarks && t.bookmark(version, false) != nil {
				return
			}
		case <-over:
			return
		case <-h.Context().Done():
			return
		}
	}
}
