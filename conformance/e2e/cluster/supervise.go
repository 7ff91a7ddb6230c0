package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// backOff says how long a service manager waits before it restarts a program that has ended.
type backOff struct {
	// first is the pause, and limit the longest one. Without a limit each is as the first.
	// With one a program is started again at once the first time, after the first pause
	// the second time, and each further pause is twice the one before.
	first, limit time.Duration
	// forget is how long a program has to run until its restarts are counted from 0 again.
	forget time.Duration
}

var (
	// services are programs that the service manager of a node starts: kubelets,
	// kube-proxy.exe, container runtimes. Kubernetes' scripts for Windows nodes set 10 s
	// (kubernetes/kubernetes cluster/gce/windows/k8s-node-setup.psm1: sc.exe failure kubelet
	// reset= 0 actions= restart/10000).
	services = backOff{first: 10 * time.Second}
	// staticPods are the control plane's, as kubeadm makes them, and the kubelet starts their
	// containers again (kubernetes/kubernetes pkg/kubelet/kubelet.go newCrashLoopBackOff,
	// kuberuntime_manager.go doBackOff; client-go's Backoff forgets after twice the limit).
	staticPods = backOff{first: 10 * time.Second, limit: 5 * time.Minute, forget: 10 * time.Minute}
)

// pause returns how long to wait before the next start of a program that has ended "before" times in
// a row.
func (b backOff) pause(before int) time.Duration {
	if b.limit == 0 {
		return b.first
	}
	if before == 0 {
		return 0
	}
	d := b.first
	for range before - 1 {
		if d = 2 * d; d >= b.limit {
			return b.limit
		}
	}
	return d
}

// start makes sure that the program runs. It leaves a running program alone, and cuts a pending
// back-off short.
func (p *program) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && p.ended() == "" {
		p.wanted = true
		return nil
	}
	r, err := p.launch(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if p.run != nil {
		p.restarts++
	}
	p.run, p.wanted, p.tries, p.next, p.trouble = r, true, 0, time.Time{}, ""
	p.since++
	mine := p.since
	p.c.work.Go(func() { p.supervise(mine, r) })
	return nil
}

// supervise restarts a program whenever it ends, until it is stopped or started by a call, or the
// cluster ends.
func (p *program) supervise(mine uint64, r *run) {
	for {
		select {
		case <-p.c.life.Done():
			return
		case <-r.done:
		}
		pause, ok := p.failed(mine, r.how)
		for ok {
			select {
			case <-p.c.life.Done():
				return
			case <-time.After(pause):
			}
			var next *run
			next, pause, ok = p.retry(mine)
			if next != nil {
				r = next
				break
			}
		}
		if !ok {
			return
		}
	}
}

// failed records that a program has ended by itself, and returns when to restart it; false for a
// program that was stopped, or started by another call.
func (p *program) failed(mine uint64, how string) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted || p.since != mine || p.c.life.Err() != nil {
		return 0, false
	}
	if f := p.again.forget; f > 0 && time.Since(p.run.since) > f {
		p.tries = 0
	}
	return p.waitFor("has ended: " + how), true
}

// waitFor notes when a program starts again. The lock is held.
func (p *program) waitFor(why string) time.Duration {
	pause := p.again.pause(p.tries)
	p.tries++
	p.next = time.Now().Add(pause)
	when := "at once"
	if pause > 0 {
		when = "in " + pause.String()
	}
	p.c.say(fmt.Sprintf("%s %s; it starts again %s", p.name, why, when))
	return pause
}

// retry starts a program again. Without a run it has failed, and the pause is that before
// the next time.
func (p *program) retry(mine uint64) (*run, time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted || p.since != mine {
		return nil, 0, false
	}
	r, err := p.launch(p.c.life)
	if p.c.life.Err() != nil {
		return nil, 0, false
	}
	p.restarts++
	if err != nil {
		p.trouble = err.Error()
		return nil, p.waitFor("does not start: " + p.trouble), true
	}
	p.run, p.next, p.trouble = r, time.Time{}, ""
	p.c.say(fmt.Sprintf("%s has started again", p.name))
	return r, 0, true
}

// grace is how long a program may take to end by itself.
const grace = 10 * time.Second

// stop ends a program, which stays ended. One that takes too long is killed.
func (p *program) stop(ctx context.Context, kill bool) error {
	p.mu.Lock()
	p.wanted, p.next = false, time.Time{}
	r := p.run
	p.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.end(ctx, kill)
}

// end ends a run and waits for that.
func (r *run) end(ctx context.Context, kill bool) error {
	patience := grace
	for {
		select {
		case <-r.done:
			return nil
		default:
		}
		if err := r.signal(kill); err != nil && kill {
			select {
			case <-r.done: // it was faster
				return nil
			default:
				return err
			}
		}
		if kill {
			patience = upWithin
		}
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(patience):
		}
		if kill {
			return errors.New("it was killed and does not end")
		}
		kill = true
	}
}

// kill kills a program as a fault does: its service manager starts it again.
func (p *program) kill(ctx context.Context) error {
	p.mu.Lock()
	r, how := p.run, p.ended()
	p.mu.Unlock()
	if how != "" {
		return fmt.Errorf("%s does not run: %s", p.name, how)
	}
	return r.end(ctx, true)
}
