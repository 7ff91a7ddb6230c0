package cluster

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
)

// WindowsMemory is the memory of a Windows node by default. A pod that fills a
// node shall not fill this machine: real nodes have more, and only their kubelets notice.
const WindowsMemory = 4 << 30

// memoryEvery is how often a node's memory is counted; kubelets look every ten seconds.
const memoryEvery = 2 * time.Second

// taken is what the programs of a node and its containers have in memory, in bytes.
func (c *Cluster) taken(n *kube.Node) uint64 {
	c.mu.Lock()
	r := c.runtimes[n.Name]
	programs := slices.Clone(c.programs)
	c.mu.Unlock()
	var sum uint64
	if r != nil {
		sum = r.Memory(c.life)
	}
	for _, p := range programs {
		p.mu.Lock()
		last, running := p.run, p.ended() == ""
		p.mu.Unlock()
		if p.machine != machine(n) || !running || last.memory == nil {
			continue
		}
		if m, err := last.memory(c.life); err == nil { // else it has just ended
			sum += m
		}
	}
	return sum
}

// memory writes for kubelet.exe, again and again, what memory its node has and how much of it
// is free (shims.Memory): the whole without what the node's programs and containers have.
// Windows itself, which is simulated, takes no memory.
func (c *Cluster) memory(file string, n *kube.Node) error {
	write := func() error {
		all, free := c.o.WindowsMemory, c.o.WindowsMemory
		free -= min(all, c.taken(n))
		// Whoever reads it meanwhile has the old one or the new one.
		if err := os.WriteFile(file+".new", fmt.Appendf(nil, "%d %d\n", all, free), 0o644); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	}
	if err := write(); err != nil {
		return err
	}
	c.work.Go(func() {
		tick := time.NewTicker(memoryEvery)
		defer tick.Stop()
		for {
			select {
			case <-c.life.Done():
				return
			case <-tick.C:
			}
			if err := write(); err != nil && c.life.Err() == nil {
				c.say("memory of a node: " + err.Error())
				return
			}
		}
	})
	return nil
}
