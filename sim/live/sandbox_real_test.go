package live

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// TestSandboxesByAProgram: the plugin's program attaches several pods at once, while
// connections go on, and takes them down.
func TestSandboxesByAProgram(t *testing.T) {
	winetest.Need(t)
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{Components: labfile.Real, Keep: true})
	if s := strings.Join(n.c.Components, " "); strings.Contains(s, "kube-proxy") {
		t.Errorf("a kube-proxy of the lab runs: %s", s)
	}
	server := addPod(t, n, "server", "win2")
	echoOn(t, n, server.Machine, netip.AddrPortFrom(server.IPv4, 8080))
	var all sync.WaitGroup
	begin := time.Now()
	for i := range 6 {
		all.Go(func() {
			a, err := n.AddPod(t.Context(), Sandbox{Namespace: "many", Name: fmt.Sprint("p", i), Node: fmt.Sprint("win", i%2+1)})
			if err != nil {
				t.Error(err)
				return
			}
			c, err := n.Dial(t.Context(), a.Machine, "tcp", netip.AddrPortFrom(server.IPv4, 8080), 20*time.Second)
			if err != nil {
				t.Errorf("%s: %v", a.Machine, err)
				return
			}
			if err := says(c, bufio.NewReader(c), a.Machine); err != nil {
				t.Errorf("%s: %v", a.Machine, err)
			}
			_ = c.Close()
			if err := n.RemovePod(t.Context(), a.Machine); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	t.Logf("6 pods came and went in %v", time.Since(begin))
	if s := strings.Join(n.c.Components, " "); !strings.Contains(s, "flannel") && !strings.Contains(s, "win-bridge") {
		t.Errorf("no plugin's program has run: %q", s)
	}
	for _, node := range []string{"win1", "win2"} {
		_ = n.Do(func(c *lab.Cluster) error {
			for _, e := range c.HNS(node).ListEndpoints(nil) {
				if strings.Contains(e.Name, "many") {
					t.Errorf("endpoint %s on %s is left", e.Name, node)
				}
			}
			return nil
		})
	}
}

// containerParent makes this test a program with containers that is killed.
const containerParent = "WINLAB_TEST_CONTAINER_PARENT"

// TestContainerParent is the program of TestNothingIsLeftOfContainers.
func TestContainerParent(t *testing.T) {
	if os.Getenv(containerParent) == "" {
		t.Skip("the program of TestNothingIsLeftOfContainers")
	}
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	for node, args := range map[string][]string{"linux1": {"sh", "-c", "trap '' TERM HUP INT; setsid sleep 1000 & echo up linux; sleep 1000"},
		"win1": {"cmd", "/c", "echo up windows & ping -n 1000 127.0.0.1 >nul"}} {
		a := addPod(t, n, "on-"+node, node)
		h, err := n.CreateContainer(t.Context(), a.Machine, Container{Name: "a", Args: args})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Start(t.Context(), [3]*os.File{os.Stdin, os.Stdout, os.Stdout}); err != nil {
			t.Fatal(err)
		}
		if h.windows != nil {
			fmt.Println("prefix", h.windows.dir)
		}
	}
	fmt.Println("all")
	select {}
}

// TestNothingIsLeftOfContainers: not of a program that is killed.
func TestNothingIsLeftOfContainers(t *testing.T) {
	winetest.Need(t)
	upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{}).Close() // or skip
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestContainerParent$", "-test.v")
	cmd.Env = append(os.Environ(), containerParent+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	prefix := ""
	up := map[string]bool{}
	r := bufio.NewReader(out)
	for len(up) < 3 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("it has ended: %v, %v", err, up)
		}
		switch f := strings.Fields(line); {
		case len(f) == 2 && f[0] == "prefix":
			prefix = f[1]
		case len(f) == 2 && f[0] == "up", len(f) == 1 && f[0] == "all":
			up[line] = true
		case strings.Contains(line, "--- FAIL"):
			t.Fatal(line)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Whoever still had the output would keep this waiting.
	_, _ = io.ReadAll(r)
	_ = cmd.Wait()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(prefix); errors.Is(err, os.ErrNotExist) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the prefix %s is left", prefix)
		}
	}
}
