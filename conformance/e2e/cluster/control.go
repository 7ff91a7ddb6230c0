package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

const (
	// securePort is the API server's on the control plane's node.
	securePort = 6443
	etcdPort   = 2379
	// upWithin is how long a program of the control plane may take on a busy machine.
	upWithin = 2 * time.Minute
)

// control starts etcd and the control plane on the first Linux node. The components
// share its network, as on a control plane made by kubeadm, and talk to the API server
// there on loopback; kubelets and kube-proxies use its address in the lab.
func (c *Cluster) control(ctx context.Context) error {
	for _, start := range []func(context.Context) error{c.etcd, c.apiServer} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return errors.Join(c.controllerManager(ctx), c.scheduler(ctx))
}

// issue makes the certificates and kubeconfigs of all components. The users are those to
// which the API server's own roles are bound (plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
func (c *Cluster) issue() (err error) {
	if c.pki, err = newPKI(filepath.Join(c.dir, "pki")); err != nil {
		return err
	}
	loopback := cert.AltNames{DNSNames: []string{"localhost"}, IPs: ips("127.0.0.1")}
	api := cert.AltNames{
		DNSNames: []string{"localhost", c.host.Name, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." +
			c.Lab().Domain},
		IPs: ips("127.0.0.1", c.host.Address.String(), c.host.Address6.String()),
	}
	for _, s := range c.Lab().ServiceCIDRs {
		// The Service kubernetes has the first address of each range.
		api.IPs = append(api.IPs, ips(s.Masked().Addr().Next().String())...)
	}
	type user struct {
		name, user string
		groups     []string
		names      cert.AltNames
		config     bool
	}
	users := []user{
		{"etcd", "etcd", nil, loopback, false},
		{"kube-apiserver", "kube-apiserver", nil, api, false},
		{"kube-apiserver-kubelet", "kube-apiserver-kubelet-client", []string{"kubeadm:cluster-admins"}, cert.AltNames{}, false},
		{"front-proxy", "front-proxy-client", nil, cert.AltNames{}, false},
		{"admin", "kubernetes-admin", []string{"system:masters"}, cert.AltNames{}, true},
		{"kube-controller-manager", "system:kube-controller-manager", nil, loopback, true},
		{"kube-scheduler", "system:kube-scheduler", nil, loopback, true},
		{"kube-proxy", "system:kube-proxy", nil, cert.AltNames{}, true},
	}
	users[2].groups = []string{"system:masters"}
	if len(c.o.Hollow) > 0 {
		users = append(users, user{kwok, "kwok-controller", nil, loopback, true})
	}
	for _, n := range c.Lab().Nodes {
		users = append(users, user{"kubelet-" + n.Name, "system:node:" + n.Name, []string{"system:nodes"},
			cert.AltNames{DNSNames: []string{n.Name}, IPs: ips("127.0.0.1", n.Address.String(), n.Address6.String())}, true})
	}
	for _, u := range users {
		if err := c.pki.issue(u.name, u.user, u.groups, u.names); err != nil {
			return err
		}
		if !u.config {
			continue
		}
		server := c.server()
		if u.names.DNSNames != nil && u.names.DNSNames[0] == "localhost" {
			server = loopbackServer
		}
		k, err := c.pki.kubeconfig(u.name, server)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(*k, c.kubeconfig(u.name)); err != nil {
			return err
		}
	}
	return nil
}

// loopbackServer is the API server for programs of its own node.
const loopbackServer = "https://127.0.0.1:6443"

// server is the API server's address in the lab.
func (c *Cluster) server() string {
	return "https://" + netip.AddrPortFrom(c.host.Address, securePort).String()
}

// kubeconfig is the file of a component's configuration.
func (c *Cluster) kubeconfig(name string) string {
	return filepath.Join(c.dir, "pki", name+".conf")
}

// onControlPlane starts a component and waits until health says that it is well.
func (c *Cluster) onControlPlane(ctx context.Context, health func(context.Context) error, name string, args ...string) error {
	path, err := c.o.Programs.Path(name)
	if err != nil {
		return err
	}
	c.say("starting " + name)
	at := machine(c.host)
	p, err := c.start(ctx, at, name, c.process(at, c.logFile(name), netns.Command{Args: append([]string{path}, args...)}, false), staticPods)
	if err != nil {
		return err
	}
	p.check(upWithin, health)
	return p.well(ctx)
}

func (c *Cluster) etcd(ctx context.Context) error {
	url := fmt.Sprintf("https://127.0.0.1:%d", etcdPort)
	return c.onControlPlane(ctx, c.get(c.host, "http://127.0.0.1:2381/readyz"), "etcd", "--name=winlab", "--data-dir="+
		filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls=http://127.0.0.1:2380",
		"--cert-file="+c.pki.crt("etcd"), "--key-file="+c.pki.keyOf("etcd"), "--trusted-ca-file="+c.pki.ca(), "--client-cert-auth",
		"--listen-metrics-urls=http://127.0.0.1:2381",
		// The data does not outlive the cluster.
		"--unsafe-no-fsync")
}

func (c *Cluster) apiServer(ctx context.Context) error {
	ready := func(ctx context.Context) error {
		_, err := c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	}
	return c.onControlPlane(ctx, ready, "kube-apiserver",
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", etcdPort), "--etcd-cafile="+c.pki.ca(), "--etcd-certfile="+c.pki.crt("etcd"),
		"--etcd-keyfile="+c.pki.keyOf("etcd"),
		"--bind-address=0.0.0.0", fmt.Sprintf("--secure-port=%d", securePort), "--advertise-address="+c.host.Address.String(),
		"--tls-cert-file="+c.pki.crt("kube-apiserver"), "--tls-private-key-file="+c.pki.keyOf("kube-apiserver"), "--client-ca-file="+c.pki.ca(),
		"--service-cluster-ip-range="+join(c.Lab().ServiceCIDRs),
		"--service-account-key-file="+c.pki.file("sa.key"), "--service-account-signing-key-file="+c.pki.file("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc."+c.Lab().Domain,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--kubelet-client-certificate="+c.pki.crt("kube-apiserver-kubelet"), "--kubelet-client-key="+c.pki.keyOf("kube-apiserver-kubelet"),
		"--kubelet-certificate-authority="+c.pki.ca(),
		// No name server in the lab knows the nodes' names.
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file="+c.pki.ca(), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+c.pki.crt("front-proxy"), "--proxy-client-key-file="+c.pki.keyOf("front-proxy"))
}

func (c *Cluster) controllerManager(ctx context.Context) error {
	const name = "kube-controller-manager"
	config := c.kubeconfig(name)
	return c.onControlPlane(ctx, c.get(c.host, "https://127.0.0.1:10257/healthz"), name, "--kubeconfig="+config,
		"--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials=true",
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--client-ca-file="+c.pki.ca(), "--requestheader-client-ca-file="+c.pki.ca(), "--root-ca-file="+c.pki.ca(),
		"--service-account-private-key-file="+c.pki.file("sa.key"), "--cluster-signing-cert-file="+c.pki.ca(), "--cluster-signing-key-file="+
			c.pki.file("ca.key"),
		"--cluster-name=winlab", "--service-cluster-ip-range="+join(c.Lab().ServiceCIDRs), "--cluster-cidr="+join(c.Lab().ClusterCIDRs),
		// The lab has given the nodes their ranges: see podRanges.
		"--allocate-node-cidrs=false", "--tls-cert-file="+c.pki.crt(name), "--tls-private-key-file="+c.pki.keyOf(name))
}

// accounts waits for the service account without which no pod can be made.
func (c *Cluster) accounts(ctx context.Context) error {
	p, err := c.named("kube-controller-manager")
	if err != nil {
		return err
	}
	return p.ready(ctx, upWithin, func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (c *Cluster) scheduler(ctx context.Context) error {
	const name = "kube-scheduler"
	config := c.kubeconfig(name)
	return c.onControlPlane(ctx, c.get(c.host, "https://127.0.0.1:10259/healthz"), name, "--kubeconfig="+config,
		"--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--tls-cert-file="+c.pki.crt(name), "--tls-private-key-file="+c.pki.keyOf(name))
}

func join(all []netip.Prefix) string {
	var list []string
	for _, p := range all {
		list = append(list, p.String())
	}
	return strings.Join(list, ",")
}
