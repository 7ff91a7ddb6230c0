package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"
)

// Options say which cluster.
type Options struct {
	// Name is the cluster's.
	Name string
	// Kubernetes is the version of the nodes' image, as 1.37.0; "" for the image that
	// this version of kind is made for.
	Kubernetes string
	// Log gets what kind says.
	Log io.Writer
}

// ErrNoRuntime says that nothing on this machine can run kind's nodes.
var ErrNoRuntime = errors.New(
	"kind runs its nodes in containers of Docker, podman or nerdctl, and none of them answers on this machine: start one, or take --provider simulated")

// ready is how long a cluster may take, once its images are there.
const ready = 5 * time.Minute

// Networks of the cluster. They differ from those of labs in fixtures, so that a simulated
// cluster can be up beside it.
const (
	podSubnet     = "10.246.0.0/16"
	serviceSubnet = "10.98.0.0/16"
)

var fullVersion = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)$`)

// Config is the configuration of a cluster: a control plane and a worker, so that pods of
// both ends of a flow can be on two nodes.
func Config(o Options) (*v1alpha4.Cluster, error) {
	c := &v1alpha4.Cluster{
		TypeMeta:   v1alpha4.TypeMeta{APIVersion: "kind.x-k8s.io/v1alpha4", Kind: "Cluster"},
		Name:       o.Name,
		Networking: v1alpha4.Networking{PodSubnet: podSubnet, ServiceSubnet: serviceSubnet},
		Nodes:      []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}, {Role: v1alpha4.WorkerRole}},
	}
	if o.Kubernetes == "" {
		return c, nil
	}
	v := fullVersion.FindStringSubmatch(o.Kubernetes)
	if v == nil {
		return nil, fmt.Errorf("--kubernetes %s: images of kind's nodes have a version in full; write it as 1.37.0", o.Kubernetes)
	}
	for i := range c.Nodes {
		c.Nodes[i].Image = "kindest/node:v" + v[1]
	}
	return c, nil
}

// Cluster is a cluster that is up.
type Cluster struct {
	// Kubeconfig is the administrator's.
	Kubeconfig string

	name, dir string
	provider  *cluster.Provider
}

// Up makes a cluster. When the context ends before it is up, or it does not come up,
// nothing is left.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	config, err := Config(o)
	if err != nil {
		return nil, err
	}
	runtime, err := cluster.DetectNodeProvider()
	if err != nil {
		return nil, ErrNoRuntime
	}
	c := &Cluster{name: o.Name, provider: cluster.NewProvider(runtime, cluster.ProviderWithLogger(logger{o.Log}))}
	names, err := c.provider.List()
	if err != nil { // the command is there, and nothing behind it
		return nil, fmt.Errorf("%w (%w)", ErrNoRuntime, err)
	}
	for _, n := range names {
		if n == o.Name {
			return nil, fmt.Errorf("a cluster of kind named %s is up already; --name gives this one another name", n)
		}
	}
	if c.dir, err = os.MkdirTemp("", "winlab-kind-"); err != nil {
		return nil, err
	}
	c.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	err = c.provider.Create(o.Name, cluster.CreateWithV1Alpha4Config(config), cluster.CreateWithKubeconfigPath(c.Kubeconfig),
		cluster.CreateWithWaitForReady(ready), cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
	// kind knows no context: what ended meanwhile ends here.
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close takes the cluster away.
func (c *Cluster) Close() error {
	return errors.Join(c.provider.Delete(c.name, c.Kubeconfig), os.RemoveAll(c.dir))
}

// logger hands on what kind says to its users, and no more.
type logger struct{ to io.Writer }

func (l logger) say(s string) {
	if l.to != nil {
		fmt.Fprintln(l.to, "kind: "+s)
	}
}

func (l logger) Warn(s string)             { l.say(s) }
func (l logger) Warnf(f string, a ...any)  { l.say(fmt.Sprintf(f, a...)) }
func (l logger) Error(s string)            { l.say(s) }
func (l logger) Errorf(f string, a ...any) { l.say(fmt.Sprintf(f, a...)) }

func (l logger) V(level log.Level) log.InfoLogger { return info{l, level == 0} }

type info struct {
	logger
	on bool
}

func (i info) Info(s string) {
	if i.on {
		i.say(s)
	}
}

func (i info) Infof(f string, a ...any) { i.Info(fmt.Sprintf(f, a...)) }
func (i info) Enabled() bool            { return i.on }
