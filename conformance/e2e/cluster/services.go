package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
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
	c.follow(f, "Services of the lab", []cache.SharedIndexInformer{services.Informer(), endpoints.Informer()}, func() error {
		all, err := services.Lister().List(labels.Everything())
		slices, err2 := endpoints.Lister().List(labels.Everything())
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		c.loadBalancers(all)
		return c.setServices(c.life, all, slices)
	}, func() error {
		return c.Net.Do(func(l *lab.Cluster) error { return l.Adopt() })
	})
}

// follow calls changed after each change of what the informers watch, and tick, when it is
// not nil, every two seconds beside. It ends with the cluster; what names it in errors.
func (c *Cluster) follow(f informers.SharedInformerFactory, what string, all []cache.SharedIndexInformer, changed, tick func() error) {
	say := func(err error) {
		if err != nil && c.life.Err() == nil {
			c.say(what + ": " + err.Error())
		}
	}
	news := make(chan struct{}, 1)
	note := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	h := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { note() }, UpdateFunc: func(_, _ any) { note() },
		DeleteFunc: func(any) { note() }}
	for _, i := range all {
		if _, err := i.AddEventHandler(h); err != nil {
			say(err)
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
	var ticks <-chan time.Time
	if tick != nil {
		t := time.NewTicker(adopting)
		defer t.Stop()
		ticks = t.C
	}
	for {
		select {
		case <-c.life.Done():
			return
		case <-ticks:
			say(tick())
			continue
		case <-news:
		}
		select {
		case <-c.life.Done():
			return
		case <-time.After(settle):
		}
		say(changed())
	}
}

func (c *Cluster) setServices(ctx context.Context, services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) error {
	list, err := labfile.ServicesOf(services, endpoints)
	if err != nil {
		c.say(fmt.Sprintf("not for the lab: %v", err))
	}
	notices, err := labfile.NotFollowed(services, endpoints)
	for i := range notices {
		notices[i].Why += "; on Windows nodes kube-proxy.exe has it"
	}
	return errors.Join(err, c.Net.SetNotices(notices), c.Net.SetServices(ctx, list))
}
