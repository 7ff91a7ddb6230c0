package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// expose makes the API server reachable for programs of this machine, which see none of
// the lab's addresses: at a port of loopback whose connections go on to the API server in
// its namespace. TLS is from end to end.
func (c *Cluster) expose() error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	k, err := c.pki.kubeconfig("admin", "https://"+l.Addr().String())
	if err == nil {
		err = clientcmd.WriteToFile(*k, c.Kubeconfig())
	}
	if err != nil {
		_ = l.Close()
		return err
	}
	context.AfterFunc(c.life, func() { _ = l.Close() })
	c.work.Go(func() {
		var open sync.WaitGroup
		defer open.Wait()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { c.relay(conn) })
		}
	})
	return nil
}

// Kubeconfig is a file with which programs of this machine reach the cluster as its
// administrator. It goes with the cluster.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// relay connects a connection with the API server until one side ends it or the cluster
// ends.
func (c *Cluster) relay(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	to, err := c.dialOn(c.host)(c.life, "tcp", fmt.Sprintf("127.0.0.1:%d", securePort))
	if err != nil {
		if c.life.Err() == nil {
			c.say("a connection to the API server: " + err.Error())
		}
		return
	}
	defer func() { _ = to.Close() }()
	stop := context.AfterFunc(c.life, func() { _, _ = conn.Close(), to.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pour(to, conn) })
	both.Go(func() { pour(conn, to) })
	both.Wait()
}

// pour copies one direction, and says its end to the other side.
func pour(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if w, ok := to.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
}

// WriteLog writes what a program has written so far.
func (c *Cluster) WriteLog(w io.Writer, program string) error {
	p, err := c.named(program)
	if err != nil {
		return err
	}
	if p.log == "" {
		return fmt.Errorf("%s has no log of its own: it is a part of winlab-cluster, whose notes winlab-cluster logs shows", program)
	}
	f, err := os.Open(p.log)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}
