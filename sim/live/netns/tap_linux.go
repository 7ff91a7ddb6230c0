package netns

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Device is the TAP device of a namespace. Serve and Write may be called from
// different goroutines.
type Device struct {
	f       *os.File
	raw     syscall.RawConn
	fd      int
	offload bool
	header  [vnetHeader]byte // of Serve
	out     [vnetHeader]byte // of Write
	iov     [2][]byte
}

// vnetHeader is the size of struct virtio_net_hdr of linux/virtio_net.h, in bytes.
const vnetHeader = 10

// needsChecksum is VIRTIO_NET_HDR_F_NEEDS_CSUM.
const needsChecksum = 1

func newDevice(fd int, s Spec) (*Device, error) {
	d := &Device{f: fileOf(fd, s.Name), fd: fd, offload: s.Offload}
	var err error
	if d.raw, err = d.f.SyscallConn(); err != nil {
		_ = d.f.Close()
		return nil, err
	}
	return d, nil
}

// batch is how many frames are read in a row before others get the lock.
const batch = 64

// Serve reads frames until the device is closed and hands each to f, with the lock
// held. The frame lies in buf and is valid until f returns; a frame that is longer
// than buf is cut off. No lock is held while there is nothing to read.
func (d *Device) Serve(lock sync.Locker, buf []byte, f func(frame []byte, o Offload)) error {
	for {
		var failed error
		err := d.raw.Read(func(fd uintptr) (done bool) {
			lock.Lock()
			defer lock.Unlock()
			for range batch {
				frame, o, err := d.read(int(fd), buf)
				switch {
				case errors.Is(err, unix.EAGAIN):
					return false
				case errors.Is(err, unix.EINTR):
					continue
				case err != nil:
					failed = err
					return true
				}
				f(frame, o)
			}
			return true
		})
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil || failed != nil {
			return errors.Join(err, failed)
		}
	}
}

func (d *Device) read(fd int, buf []byte) ([]byte, Offload, error) {
	if !d.offload {
		n, err := unix.Read(fd, buf)
		return buf[:max(n, 0)], Offload{}, err
	}
	n, err := unix.Readv(fd, [][]byte{d.header[:], buf})
	if err != nil || n < vnetHeader {
		return nil, Offload{}, err
	}
	ne := binary.NativeEndian
	h := &d.header
	o := Offload{Checksum: h[0]&needsChecksum != 0, Kind: h[1], HeaderLen: ne.Uint16(h[2:]), SegmentSize: ne.Uint16(h[4:]),
		Start: ne.Uint16(h[6:]), Offset: ne.Uint16(h[8:])}
	return buf[:n-vnetHeader], o, nil
}

// Write writes a frame. A device whose namespace cannot take it now loses it, as a
// full queue does; that is the error.
func (d *Device) Write(frame []byte, o Offload) error {
	var err error
	for range 3 {
		if d.offload {
			ne := binary.NativeEndian
			h := &d.out
			if h[0] = 0; o.Checksum {
				h[0] = needsChecksum
			}
			h[1] = o.Kind
			ne.PutUint16(h[2:], o.HeaderLen)
			ne.PutUint16(h[4:], o.SegmentSize)
			ne.PutUint16(h[6:], o.Start)
			ne.PutUint16(h[8:], o.Offset)
			d.iov = [2][]byte{h[:], frame}
			_, err = unix.Writev(d.fd, d.iov[:])
		} else {
			_, err = unix.Write(d.fd, frame)
		}
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return err
}

// Close closes the device, which goes then.
func (d *Device) Close() error { return d.f.Close() }
