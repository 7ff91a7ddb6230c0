package netns

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// keep opens the mount namespace of a container that has just been started.
func (c *container) keep() {
	fd, err := unix.Open("/proc/"+strconv.Itoa(c.pid)+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // this /proc does not show it
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return
	}
	c.mnt, c.ns = fd, st.Ino
}

// close says that the container is no longer needed. The helper's lock is held.
func (c *container) close() {
	c.closed = true
	if c.pidfd >= 0 {
		_ = unix.Close(c.pidfd)
		c.pidfd = -1
	}
	c.settle()
}

// settle gives the mount namespace up when nothing needs it.
func (c *container) settle() {
	if c.ended && c.closed && !c.sweeping && c.mnt >= 0 {
		_ = unix.Close(c.mnt)
		c.mnt = -1
	}
}

// ends notes that the first process has ended. The helper's lock is held.
func (h *helper) ends(c *container) {
	c.ended = true
	if !c.shares {
		c.settle()
		return
	}
	c.sweeping = true
	go func() {
		c.sweep()
		h.mu.Lock()
		defer h.mu.Unlock()
		c.sweeping = false
		c.settle()
	}()
}

// discard ends a container and forgets it. A missing container is not an error.
func (h *helper) discard(q request, s *space) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := s.containers[q.Inside]; c != nil {
		c.end()
		delete(s.containers, q.Inside)
	}
	return nil
}

// errRemoved says that a container was removed before its program ran.
var errRemoved = errors.New("the container was removed while it was being started")

// end ends a container that is removed. The helper's lock is held.
func (c *container) end() {
	c.kill()
	if c.starting {
		c.doomed = true // and closed by whoever starts it
		return
	}
	c.close()
}

// kill ends all processes of a container. The helper's lock is held.
func (c *container) kill() {
	if !c.ended && c.pidfd >= 0 {
		_ = unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0)
	}
}

// sweep ends what a container that shares its PID namespace has left in it.
func (c *container) sweep() {
	for {
		all, err := processes(c.ns)
		if err != nil || len(all) == 0 || c.ns == 0 {
			return
		}
		for _, pid := range all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond) // until they have gone, and all that they have started
	}
}
