package cluster

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/winlab-dev/winlab/sim/kube/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// The images of what fixtures/cluster-binaries pins.
const (
	coreDNSImage       = "registry.k8s.io/coredns/coredns:v1.15.0"
	metricsServerImage = "registry.k8s.io/metrics-server/metrics-server:v0.9.0"
)

//go:embed addons
var addonFiles embed.FS

// addons applies what every cluster has beside its control plane: CoreDNS and the metrics
// server.
func (c *Cluster) addons(ctx context.Context) error {
	return errors.Join(c.coreDNS(ctx), c.metricsServer(ctx))
}

// coreDNS is at the lab's address of the cluster DNS. The names outside that the lab gives to
// the cluster DNS itself are in its hosts file; what it does not know it asks those that
// dns.forward names.
func (c *Cluster) coreDNS(ctx context.Context) error {
	if !c.lab.DNSIP.IsValid() {
		return nil
	}
	type zone struct{ Zone, Servers string }
	var forward []zone
	for _, f := range c.forward {
		forward = append(forward, zone{f.Zone, servers(f)})
	}
	return c.apply(ctx, "coredns.yaml", map[string]any{
		"Domain": c.lab.Domain, "Address": c.lab.DNSIP.String(), "Image": coreDNSImage, "Forward": forward, "Hosts": c.hosts(),
	})
}

// hosts are the lines of the cluster DNS's hosts file. A hosts file has no aliases and no
// error codes: a lab that gives such answers is told so.
func (c *Cluster) hosts() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(c.records)) {
		if a := c.records[name]; a.Addr.IsValid() {
			lines = append(lines, a.Addr.String()+" "+name)
		} else {
			c.say("the cluster DNS does not know " + name + ": it can have an address, and neither an alias nor an error")
		}
	}
	return lines
}

// metricsServer answers kubectl top and the autoscaler. An aggregated API that is not
// served would keep namespaces from being deleted, so there is none without its program.
func (c *Cluster) metricsServer(ctx context.Context) error {
	if _, err := c.o.Programs.Path("metrics-server"); err != nil {
		c.say("no metrics server: " + err.Error())
		return nil
	}
	return c.apply(ctx, "metrics-server.yaml", map[string]any{"Image": metricsServerImage, "Nodes": HollowLabel + "!=true"})
}

// servers are those of a forward line, as a Corefile writes them.
func servers(f dns.Forward) string {
	var all []string
	for _, a := range f.Servers {
		all = append(all, a.String())
	}
	return strings.Join(all, " ")
}

// apply fills in a file of addons and applies its objects on the server's side.
func (c *Cluster) apply(ctx context.Context, file string, values any) error {
	t, err := template.ParseFS(addonFiles, path.Join("addons", file))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, values); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	docs := yaml.NewYAMLOrJSONDecoder(&text, 4<<10)
	for {
		o := &unstructured.Unstructured{}
		if err := docs.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		var r dynamic.ResourceInterface = client.Resource(resource)
		if ns := o.GetNamespace(); ns != "" {
			r = client.Resource(resource).Namespace(ns)
		}
		if _, err := r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "winlab-cluster", Force: true}); err != nil {
			return fmt.Errorf("%s: %s %s: %w", file, o.GetKind(), o.GetName(), err)
		}
	}
}
