package cri

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxLine is the length at which a line of a log is cut into parts, in bytes:
// containerd's max_container_log_line_size.
const maxLine = 16 << 10

// logFile is the log of a container in the form that the kubelet reads:
// time, stream, tag and text of a line (pkg/kubelet/kuberuntime/logs of Kubernetes).
type logFile struct {
	mu   sync.Mutex
	path string // on this machine, "" for none
	f    *os.File
}

// openLogFile opens a log to write at its end.
func openLogFile(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.reopen()
}

// reopen goes on with a new file, after the kubelet has renamed the old one.
func (l *logFile) reopen() error {
	if l.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		_ = l.f.Close()
	}
	l.f = f
	return nil
}

func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

// line writes one, or a part of one. What a disk does not take is lost: a container
// does not stop for it.
func (l *logFile) line(stream runtimeapi.LogStreamType, tag runtimeapi.LogTag, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return
	}
	// The kubelet reads times as RFC 3339 with nanoseconds.
	b := time.Now().AppendFormat(make([]byte, 0, len(text)+64), time.RFC3339Nano)
	b = append(append(append(append(b, ' '), stream...), ' '), tag...)
	b = append(append(append(b, ' '), text...), '\n')
	_, _ = l.f.Write(b)
}

// logStream cuts what one stream of a container writes into lines. Carriage returns
// stay, as with containerd.
type logStream struct {
	log    *logFile
	stream runtimeapi.LogStreamType
	buf    []byte
}

func (s *logStream) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i >= 0 && len(s.buf)+i <= maxLine {
			s.log.line(s.stream, runtimeapi.LogTagFull, append(s.buf, b[:i]...))
			s.buf, b = s.buf[:0], b[i+1:]
			continue
		}
		take := min(maxLine-len(s.buf), len(b))
		s.buf, b = append(s.buf, b[:take]...), b[take:]
		if len(s.buf) == maxLine && len(b) > 0 && b[0] != '\n' {
			s.log.line(s.stream, runtimeapi.LogTagPartial, s.buf)
			s.buf = s.buf[:0]
		}
	}
	return n, nil
}

// flush writes what has no end of line yet, as a part.
func (s *logStream) flush() {
	if len(s.buf) > 0 {
		s.log.line(s.stream, runtimeapi.LogTagPartial, s.buf)
		s.buf = nil
	}
}
