package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// dialTimeout is for connections that the cluster's own side opens inside the lab.
const dialTimeout = 10 * time.Second

// dialOn returns how to open connections on a node.
func (c *Cluster) dialOn(n *kube.Node) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, fmt.Errorf("%s: only addresses can be reached in the lab: %w", address, err)
		}
		return c.Net.Dial(ctx, machine(n), network, to, dialTimeout)
	}
}

// get asks a program of a node whether it is healthy.
func (c *Cluster) get(n *kube.Node, url string) func(context.Context) error {
	roots := x509.NewCertPool()
	roots.AddCert(c.pki.cert)
	client := &http.Client{Transport: &http.Transport{DialContext: c.dialOn(n), TLSClientConfig: &tls.Config{RootCAs: roots},
		DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		r, err := client.Do(q)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		_ = r.Body.Close()
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s says %s: %s", url, r.Status, text)
		}
		return err
	}
}

// connect makes the administrator's client, which dials in the lab.
func (c *Cluster) connect() error {
	k, err := c.pki.kubeconfig("admin", loopbackServer)
	if err != nil {
		return err
	}
	if c.config, err = clientcmd.NewDefaultClientConfig(*k, nil).ClientConfig(); err != nil {
		return err
	}
	c.config.Dial = c.dialOn(c.host)
	c.config.QPS, c.config.Burst = 50, 100
	c.Client, err = kubernetes.NewForConfig(c.config)
	return err
}

// Config is the administrator's, for clients inside this process.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }
