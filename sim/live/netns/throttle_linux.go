package netns

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A container is held to its limit of processors as cpulimit(1) does it, since without
// control groups the kernel does not: what its processes use is looked at again and again,
// and they are stopped while they have used more than their share.
const (
	// throttlePeriod is over how long a share may be saved up and used at once, that of the
	// kernel's own limit (cpu.max, Documentation/scheduler/sched-bwc.rst).
	throttlePeriod = 100 * time.Millisecond
	// throttleTick is how often a container is looked at that uses much of its share.
	throttleTick = 10 * time.Millisecond
)

// share is what a container may still use. It is a bucket of processor time that fills with
// the limit; what was used too much before anybody looked is owed, so that the average over
// any longer time is the limit.
type share struct {
	limit   float64       // processors
	credit  time.Duration // negative: owed
	stopped bool
}

// allowedIn is what the limit gives in some time.
func (s *share) allowedIn(d time.Duration) time.Duration { return time.Duration(s.limit * float64(d)) }

// look counts what was used, in the time since it was last looked at, and reports whether
// the processes may run.
func (s *share) look(used, after time.Duration) bool {
	s.credit = min(s.credit+s.allowedIn(after), s.allowedIn(throttlePeriod)) - used
	if s.stopped { // they run again when they need not stop at once
		return s.credit >= s.allowedIn(throttleTick)
	}
	return s.credit > 0
}

// pause is how long until the next look is needed.
func (s *share) pause() time.Duration {
	switch {
	case s.stopped: // nothing is used meanwhile
		owed := time.Duration(float64(s.allowedIn(throttleTick)-s.credit) / s.limit)
		return min(max(owed, throttleTick), throttlePeriod)
	case s.credit >= s.allowedIn(throttlePeriod)/2:
		return throttlePeriod / 2
	}
	return throttleTick
}

// spent is the processor time of a process: its own, and that of children that it has
// waited for.
type spent struct{ own, children time.Duration }

// meter finds out from what processes have used what was used since it last looked. The
// time of a process that has ended comes again as that of its parent's children.
type meter struct {
	seen map[string]spent // by process
	// ended is what was counted of processes that have ended, until their parents have it,
	// or for some looks: not every parent waits.
	ended time.Duration
	looks int
}

// endedLooks is for how many looks the time of an ended process is expected to come again.
const endedLooks = 20

// count takes what all processes have used, and returns how much of that is new.
func (m *meter) count(now map[string]spent) (used time.Duration) {
	var children time.Duration
	for id, n := range now {
		was := m.seen[id]
		used += max(n.own-was.own, 0)
		children += max(n.children-was.children, 0)
	}
	for id, was := range m.seen {
		if _, ok := now[id]; !ok {
			m.ended, m.looks = m.ended+was.own+was.children, 0
		}
	}
	m.seen = now
	again := min(children, m.ended)
	m.ended -= again
	if m.looks++; m.looks > endedLooks {
		m.ended = 0
	}
	return used + children - again
}

// throttle holds a container to its limit until it ends. What it took to start it is not
// counted.
func (h *helper) throttle(c *container) {
	s := share{limit: float64(c.spec.CPU) / 1000}
	s.credit = s.allowedIn(throttlePeriod)
	m := meter{}
	all, _ := processes(c.ns)
	m.count(h.spentBy(c, all))
	last, listed := time.Now(), time.Now()
	for {
		time.Sleep(s.pause())
		h.mu.Lock()
		over := c.ended || c.closed
		h.mu.Unlock()
		if over {
			return // whoever ends a container kills it, stopped or not
		}
		if time.Since(listed) >= throttlePeriod {
			all, _ = processes(c.ns)
			listed = time.Now()
		}
		used := m.count(h.spentBy(c, all))
		now := time.Now()
		run := s.look(used, now.Sub(last))
		last = now
		switch {
		case run && s.stopped:
			s.stopped = false
			signalAll(all, unix.SIGCONT)
		case !run: // and those that were started since
			s.stopped = true
			all, _ = processes(c.ns)
			listed = now
			signalAll(all, unix.SIGSTOP)
		}
	}
}

func signalAll(all []int, s unix.Signal) {
	for _, pid := range all {
		_ = unix.Kill(pid, s)
	}
}

// spentBy is what some processes of a container have used, and those that were started in
// it later and have ended.
func (h *helper) spentBy(c *container, all []int) map[string]spent {
	h.mu.Lock()
	now := map[string]spent{"ended": {children: time.Duration(c.spent)}}
	h.mu.Unlock()
	for _, pid := range all {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		if f := statFields(data); len(f) > 19 {
			// With the time of its start a number names one process (proc_pid_stat(5), field 22).
			now[strconv.Itoa(pid)+" "+f[19]] = spent{own: tickTime(f[11], f[12]), children: tickTime(f[13], f[14])}
		}
	}
	return now
}

// statFields are the fields of /proc/PID/stat from the third on. The second is the
// program's name in parentheses, with whatever is in it.
func statFields(data []byte) []string {
	return strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
}

// tickTime adds times of /proc up.
func tickTime(all ...string) (sum time.Duration) {
	for _, text := range all {
		n, _ := strconv.ParseInt(text, 10, 64)
		sum += time.Duration(n) * (time.Second / ticks)
	}
	return sum
}
