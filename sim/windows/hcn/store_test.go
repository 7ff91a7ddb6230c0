package hcn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func start(t *testing.T, dir string) (*Service, *session, *bytes.Buffer) {
	t.Helper()
	said := &bytes.Buffer{}
	s, err := Start(builds.MustLookup("10.0.20348"), testNode, Options{State: dir, Log: log.New(said, "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	return s, s.session("test"), said
}

// die ends a service as kill -9 does: nothing more is written.
func die(s *Service) { s.store.unlock(); _ = s.store.journal.Close() }

func ok(t *testing.T, res *response) *response {
	t.Helper()
	if res.HResult != 0 {
		t.Fatalf("0x%x %s", res.HResult, res.Record)
	}
	return res
}

// populate makes one object of each kind, and a second network that is not
// persistent; it returns the handle of the first network.
func populate(t *testing.T, c *session) uint64 {
	t.Helper()
	nh := ok(t, c.call(&request{Verb: verbCreate, Kind: Network, Texts: []string{l2bridge}})).Handle
	other := ok(t, c.call(&request{Verb: verbCreate, Kind: Network,
		Texts: []string{`{"Name":"nat","Type":"NAT","Flags":8,"Ipams":[{"Subnets":[{"IpAddressPrefix":"10.1.0.0/24"}]}]}`}})).Handle
	ok(t, c.call(&request{Verb: verbCreate, Kind: Endpoint, Handle: other, Texts: []string{`{"Name":"gone"}`}}))
	eh := ok(t, c.call(&request{Verb: verbCreate, Kind: Endpoint, Handle: nh, Texts: []string{`{"Name":"e"}`}})).Handle
	var e hns.Endpoint
	if err := json.Unmarshal([]byte(ok(t, c.call(&request{Verb: verbQuery, Kind: Endpoint, Handle: eh})).Output), &e); err != nil {
		t.Fatal(err)
	}
	nsh := ok(t, c.call(&request{Verb: verbCreate, Kind: Namespace, Texts: []string{`{}`}})).Handle
	ok(t, c.call(&request{Verb: verbModify, Kind: Namespace, Handle: nsh,
		Texts: []string{fmt.Sprintf(`{"ResourceType":"Endpoint","RequestType":"Add","Settings":{"EndpointId":%q}}`, e.ID)}}))
	ok(t, c.call(&request{Verb: verbCreate, Kind: LoadBalancer,
		Texts: []string{
			fmt.Sprintf(
				`{"HostComputeEndpoints":[%q],"FrontendVIPs":["10.96.0.1"],"PortMappings":[{"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`,
				e.ID)}}))
	ok(t,
		c.call(&request{Verb: verbCreate, Kind: SdnRoute, Texts: []string{
			fmt.Sprintf(`{"HostComputeEndpoints":[%q],"Setting":[{"DestinationPrefix":"10.96.0.0/12"}]}`, e.ID)}}))
	ok(t, c.call(&request{Verb: verbHNSCall, Texts: []string{"POST", "/endpoints/" + e.ID, `{"Policies":[{"Type":"OutBoundNAT"}]}`}}))
	return nh
}

func held(s *Service) string {
	var text []byte
	s.With(func(svc *hns.Service) { text, _ = json.Marshal(svc.Snapshot()) })
	return string(text)
}

// restartWithout is held with the non-persistent network gone and one restart more.
func restartWithout(t *testing.T, s *Service) string {
	t.Helper()
	var text string
	s.With(func(svc *hns.Service) {
		var p hns.Snapshot
		raw, err := json.Marshal(svc.Snapshot())
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		again := hns.NewService(svc.Build(), svc.Options())
		if err == nil {
			err = again.Restore(&p)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := again.DeleteNetwork(again.NetworkByName("nat").ID); err != nil {
			t.Fatal(err)
		}
		again.Restart()
		raw, _ = json.Marshal(again.Snapshot())
		text = string(raw)
	})
	return text
}

// TestRestart: however the service ends, it comes back with its objects, without
// the network that is not persistent and without handles.
func TestRestart(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Service){
		"clean end": func(t *testing.T, s *Service) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		},
		"kill -9": func(_ *testing.T, s *Service) { die(s) },
		"killed while writing": func(t *testing.T, s *Service) {
			if _, err := s.store.journal.WriteString(`{"Verb":6,"Kind":1,"ID":"`); err != nil {
				t.Fatal(err)
			}
			die(s)
		},
		"killed before the new snapshot had its name": func(t *testing.T, s *Service) {
			for _, n := range []string{journalName(s.store.head.Journal + 1), "state.json.new-123"} {
				if err := os.WriteFile(filepath.Join(s.store.dir, n), []byte("{"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			die(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, c, _ := start(t, dir)
			nh := populate(t, c)
			want := restartWithout(t, s)
			end(t, s)
			s, c, _ = start(t, dir)
			if d := cmp.Diff(want, held(s)); d != "" {
				t.Errorf("the objects differ (-before +after):\n%s", d)
			}
			if res := c.call(&request{Verb: verbQuery, Kind: Network, Handle: nh}); res.HResult != 0x80070006 {
				t.Errorf("a handle outlived the service: 0x%x", res.HResult)
			}
			// New ids are new.
			ok(t, c.call(&request{Verb: verbCreate, Kind: Namespace, Texts: []string{`{}`}}))
			die(s)
			left, _ := filepath.Glob(filepath.Join(dir, "journal-*"))
			if len(left) > 2 {
				t.Errorf("files left: %v", left)
			}
		})
	}
}

func TestJournalBecomesSnapshot(t *testing.T) {
	dir := t.TempDir()
	s, c, _ := start(t, dir)
	s.store.limit, s.store.snap = 200, 0
	for range 20 {
		ok(t, c.call(&request{Verb: verbCreate, Kind: Namespace, Texts: []string{`{}`}}))
		s.store.limit, s.store.snap = 200, 0
	}
	if s.store.head.Journal < 4 || s.store.size > 400 {
		t.Errorf("journal %d has %d bytes", s.store.head.Journal, s.store.size)
	}
	die(s)
	s, _, _ = start(t, dir)
	defer die(s)
	s.With(func(svc *hns.Service) {
		if n := len(svc.ListNamespaces(nil)); n != 20 {
			t.Errorf("%d namespaces", n)
		}
	})
}

// TestFullDisk: a call that cannot be kept is refused and changes nothing, reads
// go on, and when there is room again so do writes.
func TestFullDisk(t *testing.T) {
	for name, x := range map[string]struct {
		write func(*os.File, []byte) (int, error)
		want  uint32
	}{
		"full":            {func(*os.File, []byte) (int, error) { return 0, syscall.ENOSPC }, 0x80070070},
		"full in a write": {func(f *os.File, b []byte) (int, error) { n, _ := f.Write(b[:len(b)/2]); return n, syscall.ENOSPC }, 0x80070070},
		"broken":          {func(*os.File, []byte) (int, error) { return 0, errors.New("input/output error") }, 0x8007001d},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, c, said := start(t, dir)
			populate(t, c)
			before := held(s)
			s.store.write = x.write
			for _, r := range []*request{
				{Verb: verbCreate, Kind: Namespace, Texts: []string{`{}`}},
				{Verb: verbDelete, Kind: Network},
			} {
				if res := c.call(r); res.HResult != x.want {
					t.Errorf("%s: 0x%x %s", callName(r.Verb, r.Kind), res.HResult, res.Record)
				}
			}
			if !strings.Contains(said.String(), "refusing ") {
				t.Errorf("the log says %q", said)
			}
			ok(t, c.call(&request{Verb: verbEnumerate, Kind: Network, Texts: []string{""}}))
			if after := held(s); after != before {
				t.Error("a refused call changed something")
			}
			if err := s.store.compact(s.svc); err == nil {
				t.Error("a snapshot was written to a full disk")
			}
			s.store.write = (*os.File).Write
			ok(t, c.call(&request{Verb: verbCreate, Kind: Namespace, Texts: []string{`{}`}}))
			want := restartWithout(t, s)
			die(s)
			s, _, _ = start(t, dir)
			defer die(s)
			if d := cmp.Diff(want, held(s)); d != "" {
				t.Errorf("lost on a full disk (-before +after):\n%s", d)
			}
		})
	}
}

func TestStateThatCannotBeRead(t *testing.T) {
	good := t.TempDir()
	s, c, _ := start(t, good)
	populate(t, c)
	die(s)
	journal := journalName(s.store.head.Journal)
	for name, x := range map[string]struct {
		spoil func(dir string) error
		says  string
	}{
		"no JSON":        {func(d string) error { return os.WriteFile(filepath.Join(d, stateFile), []byte("{"), 0o644) }, stateFile},
		"empty":          {func(d string) error { return os.WriteFile(filepath.Join(d, stateFile), nil, 0o644) }, stateFile},
		"other format":   {func(d string) error { return os.WriteFile(filepath.Join(d, stateFile), []byte(`{"Format":9}`), 0o644) }, "format 9"},
		"journal gone":   {func(d string) error { return os.Remove(filepath.Join(d, journal)) }, journal},
		"journal spoilt": {func(d string) error { return os.WriteFile(filepath.Join(d, journal), []byte("x\n{}\n"), 0o644) }, journal + ":1"},
		"snapshot gone":  {func(d string) error { return os.Remove(filepath.Join(d, stateFile)) }, "missing"},
		"folder is not a folder": {func(d string) error {
			return errors.Join(os.RemoveAll(d), os.WriteFile(d, nil, 0o644))
		}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := errors.Join(os.CopyFS(dir, os.DirFS(good)), x.spoil(dir)); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadDir(dir)
			_, err := Start(builds.MustLookup("10.0.20348"), testNode, Options{State: dir})
			if err == nil || !strings.Contains(err.Error(), x.says) {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadDir(dir); len(after) != len(before) {
				t.Errorf("files before %v, after %v", before, after)
			}
		})
	}
	if _, err := Start(builds.MustLookup("10.0.17763"), testNode, Options{State: good}); err == nil ||
		!strings.Contains(err.Error(), "another folder") {
		t.Errorf("state of another build: %v", err)
	}
	s, _, _ = start(t, good)
	defer die(s)
	if _, err := Start(builds.MustLookup("10.0.20348"), testNode, Options{State: good}); err == nil ||
		!strings.Contains(err.Error(), "another service") {
		t.Errorf("a second service: %v", err)
	}
}
