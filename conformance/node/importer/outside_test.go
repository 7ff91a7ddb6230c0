//go:build linux

package importer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/collect/cluster"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// standIn answers as kubectl does for a lab that is up: objects are those of the lab, and a command
// in a pod runs on the node that the pod is on, under Wine.
type standIn struct {
	t   *testing.T
	net *live.Net
	exe string
	// lists are the objects of each kind, as kubectl get -o json prints them.
	lists map[string]string
	// made and removed count pods.
	made, removed int
}

func (k *standIn) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	words := strings.Join(args, " ")
	switch {
	case args[0] == "create":
		data, err := io.ReadAll(in)
		var pod struct{ Spec struct{ NodeName string } }
		if err == nil {
			err = json.Unmarshal(data, &pod)
		}
		k.made++
		fmt.Fprintf(out, "pod/on-%s\n", pod.Spec.NodeName)
		return err
	case args[0] == "delete":
		k.removed = k.made
		return nil
	case args[0] == "exec" && args[1] == "-i": // the program is there already
		_, err := io.Copy(io.Discard, in)
		return err
	case args[0] == "exec":
		return k.exec(ctx, out, args)
	case args[0] == "get":
		text, ok := k.lists[args[1]]
		if !ok {
			text = `{"apiVersion": "v1", "kind": "List", "items": []}`
		}
		_, err := io.WriteString(out, text)
		return err
	case args[0] == "wait":
		return nil
	}
	return errors.New("not expected: " + words)
}

// exec runs what is behind -- on the node of a pod. What it prints comes as it is.
func (k *standIn) exec(ctx context.Context, out io.Writer, args []string) error {
	node := "node/" + strings.TrimPrefix(args[3], "pod/on-")
	command := append([]string{k.exe}, args[6:]...)
	dir := k.t.TempDir()
	said, err := os.Create(filepath.Join(dir, "err"))
	if err != nil {
		return err
	}
	printed, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _, _, _ = said.Close(), printed.Close(), null.Close() }()
	p, err := k.net.Start(ctx, node, netns.Command{Args: command, Env: k.net.HostVariables(node)}, [3]*os.File{null, printed, said})
	if err != nil {
		return err
	}
	e, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(printed.Name())
	if err == nil {
		_, err = out.Write(data)
	}
	if e.Code != 0 {
		text, _ := os.ReadFile(said.Name())
		return errors.Join(err, fmt.Errorf("exit code %d: %s", e.Code, text))
	}
	return err
}

// TestFromOutside takes a bundle of a lab that is up from outside: its objects, and what winlab.exe
// writes to standard output on each Windows node. The flows of a lab that is made of it have the
// verdicts of the lab that it was taken from.
func TestFromOutside(t *testing.T) {
	winetest.Need(t)
	f, err := lab.Load(labs + "l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := live.Up(t.Context(), run, live.Options{Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	exe, err := collector()
	if err != nil {
		t.Fatal(err)
	}
	built = true
	orig, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"win1", "win2"} {
		putConf(t, n, node, f.PathOf(f.Lab.Spec.Network.Conf))
	}
	objects := t.TempDir()
	objectsOf(t, orig, f, objects)
	k := &standIn{t: t, net: n, exe: exe, lists: listsOf(t, filepath.Join(objects, "cluster.json"))}
	at := ""
	for try := 1; ; try++ {
		var failed []string
		at, failed = k.take(t)
		text := strings.Join(failed, "\n")
		if len(failed) == 0 && k.made == 2*try && k.removed == k.made {
			break
		}
		// On a busy machine Wine now and then cannot start a program for another one.
		if try == 3 || !strings.Contains(text, "Internal error.") {
			t.Fatalf("%d pods were made and %d removed\n%s", k.made, k.removed, text)
		}
	}
	c, said := importDir(t, f, at)
	if same, bad := compare(t, orig, c); bad > 0 || same < 40 {
		t.Errorf("%d flows differ, %d are the same\n%s", bad, same, said)
	}
}

// take takes a bundle, and returns the steps that failed.
func (k *standIn) take(t *testing.T) (at string, failed []string) {
	t.Helper()
	at = filepath.Join(t.TempDir(), "cluster.zip")
	w, err := bundle.Create(at, "test", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	o := cluster.Options{Nodes: &cluster.Nodes{Program: k.exe}, Progress: func(s bundle.Step) {
		// Wine's GetIpNetTable2 fails: that step alone may.
		if s.Error != "" && !strings.Contains(s.Error, "GetIpNetTable2") {
			failed = append(failed, s.Node+" "+s.Name+": "+s.Error)
		}
	}}
	if err := errors.Join(cluster.TakeBy(t.Context(), w, k.run, o), w.Close()); err != nil {
		t.Fatal(err)
	}
	return at, failed
}

// listsOf splits a List into one for each kind.
func listsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Items []map[string]any }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	by := map[string][]any{}
	for _, o := range all.Items {
		kind, _ := o["kind"].(string)
		by[strings.ToLower(kind)+"s"] = append(by[strings.ToLower(kind)+"s"], o)
	}
	lists := map[string]string{"--raw": `{"gitVersion": "v1.30.0"}`}
	for kind, items := range by {
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
		if err != nil {
			t.Fatal(err)
		}
		lists[kind] = string(text)
	}
	return lists
}
