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

// bookmarkEvery is how often a watch tells its version when nothing happens.
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

// bookmark tells the version that the client has seen everything of. end marks the
// end of the objects that a watch began with.
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
	var version uint64
	if o.ResourceVersion != "" {
		var err error
		if version, err = strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil {
			return apierrors.NewBadRequest("resourceVersion " + strconv.Quote(o.ResourceVersion) + " is not one of this server")
		}
	}
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if initial && o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		return apierrors.NewBadRequest("sendInitialEvents needs resourceVersionMatch=NotOlderThan")
	}
	begin := initial || o.SendInitialEvents == nil && version == 0
	if !begin {
		if _, _, _, ok := s.store.since(version); !ok {
			return apierrors.NewResourceExpired("too old resource version: " + o.ResourceVersion)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	t := &stream{w: w, json: json.NewEncoder(w), sel: sel}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return nil
	}
	if begin {
		objects, now := s.store.list(sel)
		for _, o := range objects {
			if t.send(watch.Added, sel.resource.typed(o)) != nil {
				return nil
			}
		}
		version = now
		if initial && o.AllowWatchBookmarks && t.bookmark(version, true) != nil {
			return nil
		}
		s.markSent(sel.resource)
	}
	s.follow(h, o, t, version)
	return nil
}

// follow sends changes. A client that is gone is no error of anybody's.
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
		changes, now, next, ok := s.store.since(version)
		if !ok {
			_ = t.send(watch.Error, apierrors.NewResourceExpired("the watch is too slow: its changes are forgotten").Status())
			return
		}
		for _, c := range changes {
			if kind, o := t.sel.event(c); kind != "" && t.send(kind, t.sel.resource.typed(o)) != nil {
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
