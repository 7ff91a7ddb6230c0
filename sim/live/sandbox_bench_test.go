package live

import (
	"fmt"
	"os"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// BenchmarkSandbox is a pod of a runtime that comes and goes.
func BenchmarkSandbox(b *testing.B) {
	for _, node := range []string{"linux1", "win1"} {
		b.Run(node, func(b *testing.B) {
			n := upOutside(b, "l2bridge-flannel-host-gw.yaml", lab.Options{})
			for i := 0; b.Loop(); i++ {
				if err := n.RemovePod(b.Context(), addPod(b, n, fmt.Sprint("p", i), node).Machine); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkContainer is a container of a Linux machine from its creation to its end, and
// another program in one that runs.
func BenchmarkContainer(b *testing.B) {
	n := upOutside(b, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	pod := addPod(b, n, "web", "linux1")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	stdio := [3]*os.File{null, null, null}
	begin := func(name string, args ...string) *ContainerHandle {
		h, err := n.CreateContainer(b.Context(), pod.Machine, Container{Name: name, Args: args})
		if err == nil {
			err = h.Start(b.Context(), stdio)
		}
		if err != nil {
			b.Fatal(err)
		}
		return h
	}
	b.Run("run", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			h := begin(fmt.Sprint("c", i), "true")
			if e, err := h.Wait(b.Context()); err != nil || e.Code != 0 {
				b.Fatal(e, err)
			}
			if err := h.Remove(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("exec", func(b *testing.B) {
		h := begin("stays", "sleep", "10000")
		defer func() { // a second round of the benchmark begins with the same name
			if err := h.Remove(b.Context()); err != nil {
				b.Error(err)
			}
		}()
		for b.Loop() {
			p, err := h.Exec(b.Context(), netns.Command{Args: []string{"true"}}, stdio)
			if err != nil {
				b.Fatal(err)
			}
			if e, err := p.Wait(b.Context()); err != nil || e.Code != 0 {
				b.Fatal(e, err)
			}
		}
	})
}
