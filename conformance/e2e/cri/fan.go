package cri

import (
	"bytes"
	"io"
	"sync"
)

// fan gives what is written to everybody who is attached. Like containerd's, it waits
// for clients that are slow.
type fan struct {
	mu     sync.Mutex
	all    map[*listener]bool
	closed bool
}

// listener is somebody who is attached.
type listener struct {
	to    io.Writer
	queue chan []byte
	// finished is closed when all has been written that will come.
	finished chan struct{}
	gone     chan struct{}
	leaveOne sync.Once
}

// add attaches a writer.
func (f *fan) add(w io.Writer) *listener {
	l := &listener{to: w, queue: make(chan []byte, 16), finished: make(chan struct{}), gone: make(chan struct{})}
	f.mu.Lock()
	if f.closed {
		close(l.queue)
	} else {
		if f.all == nil {
			f.all = map[*listener]bool{}
		}
		f.all[l] = true
	}
	f.mu.Unlock()
	go l.serve()
	return l
}

func (l *listener) serve() {
	defer close(l.finished)
	for {
		select {
		case b, ok := <-l.queue:
			if !ok {
				return
			}
			if _, err := l.to.Write(b); err != nil {
				l.leave()
				return
			}
		case <-l.gone:
			return
		}
	}
}

// leave detaches.
func (l *listener) leave() { l.leaveOne.Do(func() { close(l.gone) }) }

// write is called by one goroutine only, and so is close after it.
func (f *fan) write(b []byte) {
	f.mu.Lock()
	var all []*listener
	for l := range f.all {
		all = append(all, l)
	}
	f.mu.Unlock()
	if len(all) == 0 || len(b) == 0 {
		return
	}
	b = bytes.Clone(b)
	for _, l := range all {
		select {
		case l.queue <- b:
		case <-l.gone:
			f.mu.Lock()
			delete(f.all, l)
			f.mu.Unlock()
		}
	}
}

// close says that nothing more comes.
func (f *fan) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	for l := range f.all {
		close(l.queue)
	}
	f.all = nil
}

// abort detaches everybody.
func (f *fan) abort() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.all {
		l.leave()
	}
}
