package cluster

import (
	"fmt"
	"os"
	"time"
)

// WindowsMemory is the memory of a Windows node if nobody says another. A pod that fills a
// node shall not fill this machine: real nodes have more, and only their kubelets notice.
const WindowsMemory = 4 << 30

// memoryEvery is how often a node's memory is counted; kubelets look every ten seconds.
const memoryEvery = 2 * time.Second

// memory writes for kubelet.exe, again and again, what memory its node has and how much of it
// is free (shims.Memory): the whole without what the containers have. What the node's own
// programs take is not counted, as if it were reserved.
func (c *Cluster) memory(file, node string) error {
	write := func() error {
		all, free := c.o.WindowsMemory, c.o.WindowsMemory
		c.mu.Lock()
		r := c.runtimes[node]
		c.mu.Unlock()
		if r != nil {
			free -= min(all, r.Memory(c.life))
		}
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
