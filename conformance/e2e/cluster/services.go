package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/spec"
)

const (
	// settle is how long changes are gathered before the lab gets them.
	settle = 50 * time.Millisecond
	// adopting is how often load balancers of kube-proxy.exe are looked for whose Service
	// traces do not know yet.
	adopting = 2 * time.Second
)

// services hands the API server's Services and EndpointSlices to the lab: for its model of
// kube-proxy on Linux nodes, and for traces. It ends with the cluster.
func (c *Cluster) services() {
	f := informers.NewSharedInformerFactory(c.Client, 0)
	services, endpoints := f.Core().V1().Services(), f.Discovery().V1().EndpointSlices()
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	h := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { note() }, UpdateFunc: func(_, _ any) { note() }, DeleteFunc: func(any) { note() }}
	for _, i := range []cache.SharedIndexInformer{services.Informer(), endpoints.Informer()} {
		if _, err := i.AddEventHandler(h); err != nil {
			c.say("Services: " + err.Error())
			return
		}
	}
	f.Start(c.life.Done())
	defer f.Shutdown()
	for _, ok := range f.WaitForCacheSync(c.life.Done()) {
		if !ok {
			return // the cluster has ended
		}
	}
	tick := time.NewTicker(adopting)
	defer tick.Stop()
	for {
		select {
		case <-c.life.Done():
			return
		case <-changed:
		case <-tick.C:
			if err := c.Net.Do(func(l *lab.Cluster) error { return l.Adopt() }); err != nil && c.life.Err() == nil {
				c.say("load balancers: " + err.Error())
			}
			continue
		}
		select {
		case <-c.life.Done():
			return
		case <-time.After(settle):
		}
		all, err1 := services.Lister().List(labels.Everything())
		slices, err2 := endpoints.Lister().List(labels.Everything())
		if err1 != nil || err2 != nil {
			continue // listers of a cache do not fail
		}
		if err := c.setServices(c.life, all, slices); err != nil && c.life.Err() == nil {
			c.say("Services of the lab: " + err.Error())
		}
	}
}

func (c *Cluster) setServices(ctx context.Context, services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) error {
	list, err := spec.ServicesOf(services, endpoints)
	if err != nil {
		c.say(fmt.Sprintf("not for the lab: %v", err))
	}
	return c.Net.SetServices(ctx, list)
}
