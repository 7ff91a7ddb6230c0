package live

import (
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// garbageEnv marks the copy of this test that sends garbage out of eth0.
const garbageEnv = "WINLAB_TEST_GARBAGE"

// TestGarbage: what no stack would send, out of a pod's own device, stops nobody else.
// The pod sends until the others have talked.
func TestGarbage(t *testing.T) {
	if os.Getenv(garbageEnv) != "" {
		sendGarbage(t)
		return
	}
	n := up(t, "l2bridge-flannel-host-gw.yaml", Options{})
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	env := append(os.Environ(), garbageEnv+"=1")
	p, err := n.Start(t.Context(), "pod/client", netns.Command{Args: []string{"/proc/self/exe", "-test.run=^TestGarbage$"}, Env: env},
		[3]*os.File{null, null, os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	// The others begin when the first garbage was seen to be such.
	for n.Stats().Malformed == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	var to netip.Addr
	_ = n.Do(func(c *lab.Cluster) error {
		to = c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: "default/peer"}).Address
		return nil
	})
	for range 50 {
		c, err := n.Dial(t.Context(), "pod/neighbour", "tcp", netip.AddrPortFrom(to, 80), 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		b, err := io.ReadAll(c)
		_ = c.Close()
		if err != nil || len(b) == 0 {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	t.Logf("%d malformed frames, %d in all", n.Stats().Malformed, n.Stats().Frames)
}

// sendGarbage sends frames with random bytes, and frames of a real connection that
// were damaged, until somebody ends it.
func sendGarbage(t *testing.T) {
	dev, err := net.InterfaceByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	to := &unix.SockaddrLinklayer{Ifindex: dev.Index}
	r := rand.New(rand.NewPCG(1, 2))
	types := [][2]byte{{0x08, 0x00}, {0x86, 0xdd}, {0x08, 0x06}, {0x88, 0xcc}}
	for i := 0; ; i++ {
		f := make([]byte, 14+r.IntN(1400))
		for k := range f {
			f[k] = byte(r.Uint32())
		}
		copy(f[12:], types[i%len(types)][:])
		if i%2 == 0 {
			f = packet.Build(packet.Spec{EthSrc: packet.MAC(dev.HardwareAddr), Src: netip.MustParseAddr("10.244.1.4"),
				Dst:   netip.MustParseAddr("10.244.2.4"),
				Proto: packet.TCP, SrcPort: uint16(i), DstPort: 80, TTL: 64, TCPFlags: packet.SYN, Payload: make([]byte, 40)}).Bytes()
			for range 1 + r.IntN(4) {
				f[12+r.IntN(len(f)-12)] = byte(r.Uint32())
			}
			f = f[:14+r.IntN(len(f)-13)]
		}
		_ = unix.Sendto(fd, f, 0, to)
	}
}
