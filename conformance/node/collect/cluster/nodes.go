package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Nodes says how the collector is run on Windows nodes.
type Nodes struct {
	// Names are those of the nodes; none are all Windows nodes.
	Names []string
	// Image is that of the pods, "" for [StockImage].
	Image string
	// Program is winlab.exe on this machine, which is copied into the pods; "" where the image
	// has it in its root.
	Program string
	// Namespace is where the pods are; "" is kube-system, which admits HostProcess pods in most
	// clusters.
	Namespace string
	// Arguments are more flags of winlab.exe collect.
	Arguments []string
	// Start is how long a pod may take to start, 0 for 5 minutes; Read how long winlab.exe may
	// take, 0 for 15 minutes.
	Start, Read time.Duration
}

// StockImage is an image with nothing in it: a HostProcess container has the programs of its
// node. It runs on every build of Windows (microsoft/windows-host-process-containers-base-image).
const StockImage = "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0"

// label marks the pods of one run, by which they are removed.
const label = "winlab.dev/collect"

// atOnce is on how many nodes winlab.exe runs at the same time.
const atOnce = 4

func (n *Nodes) namespace() string {
	if n.Namespace == "" {
		return "kube-system"
	}
	return n.Namespace
}

func (n *Nodes) start() time.Duration {
	if n.Start == 0 {
		return 5 * time.Minute
	}
	return n.Start
}

func (n *Nodes) read() time.Duration {
	if n.Read == 0 {
		return 15 * time.Minute
	}
	return n.Read
}

// Pod is the pod that is made on a node. It names its node, so that no scheduler and no taint
// keeps it away, ends by itself when it is not removed, and gets no token. It is a HostProcess
// container as the system: HNS answers administrators only
// (https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/).
func (n *Nodes) Pod(node, run string) []byte {
	image := n.Image
	if image == "" {
		image = StockImage
	}
	alive := int((n.start() + n.read() + 5*time.Minute).Seconds())
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"generateName": "winlab-collect-", "namespace": n.namespace(),
			"labels": map[string]any{"app.kubernetes.io/name": "winlab-collect", label: run}},
		"spec": map[string]any{
			"nodeName": node, "os": map[string]any{"name": "windows"}, "restartPolicy": "Never", "hostNetwork": true,
			"activeDeadlineSeconds": alive, "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
			"tolerations":     []any{map[string]any{"operator": "Exists"}},
			"securityContext": map[string]any{"windowsOptions": map[string]any{"hostProcess": true, "runAsUserName": `NT AUTHORITY\SYSTEM`}},
			// The image has no program of its own: ping is the node's, and waits.
			"containers": []any{map[string]any{"name": "collect", "image": image,
				"command": []any{"ping.exe", "-n", fmt.Sprint(alive), "127.0.0.1"}}},
		},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(pod) // maps of texts and numbers
	return b.Bytes()
}

// hostProcessDir is where a HostProcess container has the files of its image. The runtime puts
// the value into command lines (microsoft/hcsshim internal/jobcontainers).
const hostProcessDir = "%CONTAINER_SANDBOX_MOUNT_POINT%"

// copyArgs unpack winlab.exe in a pod, with the tar.exe that Windows Server has since 2019.
func (n *Nodes) copyArgs(pod string) []string {
	return []string{"exec", "-i", "--namespace", n.namespace(), pod, "--", "tar.exe", "-xf", "-", "-C", hostProcessDir}
}

func (n *Nodes) collectArgs(pod, node string) []string {
	args := []string{"exec", "--namespace", n.namespace(), pod, "--", hostProcessDir + `\winlab.exe`, "collect", "--node", node}
	return append(append(args, n.Arguments...), "-")
}

func (n *Nodes) deleteArgs(run string) []string {
	return []string{"delete", "pods", "--namespace", n.namespace(), "--selector", label + "=" + run, "--ignore-not-found", "--wait=false"}
}

// NodeSteps are what is done on each node, for --dry-run.
func NodeSteps(o Options) []Step {
	n := o.Nodes
	s := []Step{{Name: "pod", What: "a pod on each Windows node, which is removed at the end",
		How: []string{o.Client.Shown("create", "-f", "-")}}}
	if n.Program != "" {
		s = append(s, Step{Name: "copy", What: n.Program + " into the pod", How: []string{o.Client.Shown(n.copyArgs("POD")...)}})
	}
	return append(s, Step{Name: "collect", What: "what winlab.exe collect reads on the node (winlab collect --dry-run)",
		How: []string{o.Client.Shown(n.collectArgs("POD", "NODE")...)}},
		Step{Name: "remove", What: "the pods, also after Ctrl-C", How: []string{o.Client.Shown(n.deleteArgs("RUN")...)}})
}

// nodeNames are names that Kubernetes admits for nodes: nothing else comes into a command line.
var nodeNames = lazyregexp.New(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// windowsNodes are the names of the nodes to collect from.
func (n *Nodes) windowsNodes(data []byte) ([]string, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Status struct {
				NodeInfo struct{ OperatingSystem string }
			}
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, errors.New("which nodes run Windows is not known: nodes could not be read")
	}
	var all []string
	for _, x := range list.Items {
		if name := x.Metadata.Name; nodeNames.MatchString(name) &&
			(x.Status.NodeInfo.OperatingSystem == "windows" || x.Metadata.Labels["kubernetes.io/os"] == "windows") {
			all = append(all, name)
		}
	}
	for _, name := range n.Names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%q is not a Windows node of this cluster; there are: %s", name, strings.Join(all, ", "))
		}
	}
	if len(n.Names) > 0 {
		all = slices.Clone(n.Names)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// onNodes runs the collector on Windows nodes, some at a time.
func (o *Options) onNodes(ctx context.Context, w *bundle.Writer, kubectl Kubectl, nodes []byte) (err error) {
	note := func(s bundle.Step) { w.Step(s); o.tell(s) }
	names, nodesErr := o.Nodes.windowsNodes(nodes)
	switch {
	case nodesErr != nil:
		note(bundle.Step{Name: "pods", What: "pods on Windows nodes", Error: nodesErr.Error()})
		return nil
	case len(names) == 0:
		note(bundle.Step{Name: "pods", What: "pods on Windows nodes", Absent: "the cluster has no Windows node"})
		return nil
	}
	if o.Waits != nil {
		o.Waits(fmt.Sprintf("%-14s %s: each may take %s to start", "pods", strings.Join(names, ", "), o.Nodes.start()))
	}
	run := strings.ToLower(rand.Text()[:10])
	defer func() {
		// Also when the context has ended: nothing of this stays in the cluster.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		said := bundle.Step{Name: "remove", What: "the pods that were made"}
		if _, e := kubectl.output(late, o.Nodes.deleteArgs(run)...); e != nil {
			said.Error = fmt.Sprintf("some pods may remain; they end by themselves, or remove them with: %s: %v",
				o.Client.Shown(o.Nodes.deleteArgs(run)...), e)
		}
		note(said)
	}()
	var mu sync.Mutex
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, name := range names {
		select {
		case <-ctx.Done():
		case places <- struct{}{}:
			wg.Go(func() {
				defer func() { <-places }()
				b, err := o.Nodes.onNode(ctx, kubectl, name, run)
				if b != nil {
					defer func() { _ = b.Close() }()
				}
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					err = o.keep(w, b, name)
				}
				if err != nil {
					note(bundle.Step{Name: "node", What: "what winlab.exe collect reads", Node: name, Error: err.Error()})
				}
			})
		}
	}
	wg.Wait()
	return ctx.Err()
}

// onNode makes a pod on a node and returns the bundle that winlab.exe writes there.
func (n *Nodes) onNode(ctx context.Context, kubectl Kubectl, node, run string) (_ *bundle.Bundle, err error) {
	var out bytes.Buffer
	if err := kubectl(ctx, bytes.NewReader(n.Pod(node, run)), &out, "create", "-f", "-", "-o", "name"); err != nil {
		return nil, fmt.Errorf("the pod was not made: %w", err)
	}
	pod := strings.TrimSpace(out.String())
	if !strings.HasPrefix(pod, "pod/") || strings.ContainsAny(pod, " \t\n") {
		return nil, fmt.Errorf("the pod was not made: kubectl says %q", pod)
	}
	wait := []string{"wait", "--namespace", n.namespace(), pod, "--for=condition=Ready", "--timeout=" + n.start().String()}
	if _, err := kubectl.output(ctx, wait...); err != nil {
		return nil, fmt.Errorf("the pod did not start in %s: %w%s", n.start(), err, n.waitingReason(ctx, kubectl, pod))
	}
	if n.Program != "" {
		if err := n.copyIn(ctx, kubectl, pod); err != nil {
			return nil, fmt.Errorf("winlab.exe was not copied into the pod: %w", err)
		}
	}
	file, err := os.CreateTemp("", "winlab-node-*.zip")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	within, cancel := context.WithTimeout(ctx, n.read())
	defer cancel()
	// Its exit code is 1 when a step failed: what it wrote says which.
	runErr := kubectl(within, nil, &limited{w: file, left: bundle.DefaultLimits.File}, n.collectArgs(pod, node)...)
	if err := file.Close(); err != nil {
		return nil, err
	}
	b, err := bundle.Open(ctx, file.Name(), bundle.Limits{})
	if err == nil && b.Manifest == nil {
		err = errors.Join(errors.New("it wrote no manifest"), b.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("winlab.exe wrote no bundle that can be read: %w", errors.Join(runErr, err))
	}
	return b, nil
}

// limited writes as much as a bundle of a node may have.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errors.New("the node's bundle is too large")
	}
	return l.w.Write(p)
}

// waitingReason says what a pod that does not start waits for.
func (n *Nodes) waitingReason(ctx context.Context, kubectl Kubectl, pod string) string {
	type state struct {
		Waiting, Terminated struct{ Reason, Message string }
	}
	var p struct {
		Status struct {
			Reason, Message   string
			ContainerStatuses []struct{ State state }
		}
	}
	data, err := kubectl.output(ctx, "get", "--namespace", n.namespace(), pod, "-o", "json")
	if err != nil || json.Unmarshal(data, &p) != nil {
		return ""
	}
	words := []string{p.Status.Reason, p.Status.Message}
	for _, c := range p.Status.ContainerStatuses {
		words = append(words, c.State.Waiting.Reason, c.State.Waiting.Message, c.State.Terminated.Reason, c.State.Terminated.Message)
	}
	words = slices.DeleteFunc(words, func(s string) bool { return s == "" })
	if len(words) == 0 {
		return ""
	}
	return "; " + strings.Join(words, ": ")
}

// copyIn writes winlab.exe into a pod.
func (n *Nodes) copyIn(ctx context.Context, kubectl Kubectl, pod string) error {
	f, err := os.Open(n.Program)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	go func() {
		t := tar.NewWriter(out)
		err := t.WriteHeader(&tar.Header{Name: "winlab.exe", Typeflag: tar.TypeReg, Size: info.Size(), Mode: 0o755})
		if err == nil {
			_, err = io.Copy(t, f)
		}
		out.CloseWithError(errors.Join(err, t.Close()))
	}()
	err = kubectl(ctx, in, io.Discard, n.copyArgs(pod)...)
	_ = in.Close() // the other end stops
	return err
}

// keep adds a node's bundle to that of the cluster: its own files only, and what it says of them.
func (o *Options) keep(w *bundle.Writer, b *bundle.Bundle, node string) error {
	for _, f := range b.Files {
		m, ok := b.Manifest.Find(f)
		if !ok || m.Node != node || !strings.HasPrefix(f, "nodes/"+node+"/") {
			return fmt.Errorf("its bundle has %q, which is not a file of this node", f)
		}
	}
	for _, notice := range b.Notices {
		return fmt.Errorf("its bundle does not match its manifest: %s: %s", notice.Path, notice.Why)
	}
	for _, f := range b.Files {
		data, err := b.Read(f)
		if err != nil {
			return err
		}
		m, _ := b.Manifest.Find(f)
		if err := w.Add(m, data); err != nil {
			return err
		}
	}
	for _, s := range b.Manifest.Steps {
		s.Node = node
		w.Step(s)
		o.tell(s)
	}
	return nil
}

// Program finds winlab.exe on this machine: what was named, this program where it runs on
// Windows, or winlab.exe beside it.
func Program(named string) (string, error) {
	if named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", err
		}
		return named, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		return self, nil
	}
	beside := filepath.Join(filepath.Dir(self), "winlab.exe")
	if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not there", beside)
	} else if err != nil {
		return "", err
	}
	return beside, nil
}
