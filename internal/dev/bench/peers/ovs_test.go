//go:build linux

package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sandbox is an Open vSwitch with simulated ports, as ovs-sandbox has it: it needs no rights
// and touches no network.
type sandbox struct {
	dir       string
	env       []string
	db, swtch *exec.Cmd
}

// query is the packet that is traced.
const query = "in_port=p1,tcp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=10.244.1.4,nw_dst=10.96.0.50,nw_ttl=64,tp_src=40000,tp_dst=80"

func startOVS(ctx context.Context, dir string) (s *sandbox, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	s = &sandbox{dir: dir, env: append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir, "OVS_SYSCONFDIR="+dir)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	db := "unix:" + filepath.Join(dir, "db.sock")
	if err := s.do(ctx, "ovsdb-tool", "create", filepath.Join(dir, "conf.db"), "/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return nil, err
	}
	if s.db, err = s.start("ovsdb-server", filepath.Join(dir, "conf.db"), "--remote=p"+db, "--log-file", "--verbose=off", "--unixctl="+
		filepath.Join(dir, "db.ctl")); err != nil {
		return nil, err
	}
	if err := s.wait(ctx, filepath.Join(dir, "db.sock")); err != nil {
		return nil, err
	}
	if err := s.do(ctx, "ovs-vsctl", "--db="+db, "--no-wait", "init"); err != nil {
		return nil, err
	}
	if s.swtch, err = s.start("ovs-vswitchd", db, "--enable-dummy=override", "--disable-system", "--log-file", "--verbose=off", "--unixctl="+
		s.control()); err != nil {
		return nil, err
	}
	if err := s.do(ctx, "ovs-vsctl", "--db="+db, "-t", "20", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy",
		"fail-mode=secure",
		"--", "add-port", "br0", "p1", "--", "set", "interface", "p1", "type=dummy", "ofport_request=1",
		"--", "add-port", "br0", "p2", "--", "set", "interface", "p2", "type=dummy", "ofport_request=2"); err != nil {
		return nil, err
	}
	// Four tables, as a node has them: who sends, Services, policies, where to.
	flows := []string{
		"table=0,priority=10,in_port=1,ip,nw_src=10.244.1.4,actions=goto_table:1", "table=0,priority=0,actions=drop",
		"table=1,priority=0,actions=goto_table:2", "table=2,priority=0,actions=goto_table:3",
		"table=3,priority=10,ip,nw_dst=10.244.2.0/24,actions=mod_dl_dst:02:00:00:00:00:03,dec_ttl,output:2",
	}
	for i := range 100 {
		flows = append(flows,
			fmt.Sprintf("table=1,priority=10,tcp,nw_dst=10.96.0.%d,tp_dst=80,actions=mod_nw_dst:10.244.2.%d,mod_tp_dst:8080,goto_table:2", i, i),
			fmt.Sprintf("table=2,priority=10,tcp,nw_src=10.99.0.%d,actions=drop", i))
	}
	file := filepath.Join(dir, "flows")
	if err := os.WriteFile(file, []byte(strings.Join(flows, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	if err := s.do(ctx, "ovs-ofctl", "add-flows", "unix:"+filepath.Join(dir, "br0.mgmt"), file); err != nil {
		return nil, err
	}
	text, err := s.ask(1)
	if err == nil && !strings.Contains(text, "10.244.2.50") {
		err = fmt.Errorf("the switch does not translate to the backend: %s", text)
	}
	return s, err
}

func (s *sandbox) control() string { return filepath.Join(s.dir, "switch.ctl") }

func (s *sandbox) do(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (s *sandbox) start(name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = s.env
	// It ends with this program, whatever ends that.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}

// wait waits for a socket.
func (s *sandbox) wait(ctx context.Context, path string) error {
	for range 200 {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not appear", path)
}

func (s *sandbox) close() {
	for _, cmd := range []*exec.Cmd{s.swtch, s.db} {
		if cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}

// ask has the switch trace the packet n times over one connection, and returns the last answer.
func (s *sandbox) ask(n int) (string, error) {
	c, err := net.Dial("unix", s.control())
	if err != nil {
		return "", err
	}
	defer c.Close()
	to, from := json.NewEncoder(c), json.NewDecoder(c)
	var answer struct {
		Result string
		Error  any
	}
	for i := range n {
		if err := to.Encode(map[string]any{"method": "ofproto/trace", "params": []string{"br0", query}, "id": i}); err != nil {
			return "", err
		}
		if err := from.Decode(&answer); err != nil {
			return "", err
		}
		if answer.Error != nil {
			return "", fmt.Errorf("the switch says %v", answer.Error)
		}
	}
	return answer.Result, nil
}

// cpu is what the switch has worked.
func (s *sandbox) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.swtch.Process.Pid))
	if err != nil {
		return 0, err
	}
	// Nanoseconds on a processor, of the thread that answers.
	first, _, _ := strings.Cut(string(b), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(ns), err
}

func (b *bench) ovsTraces(context.Context) (cost, error) {
	const n = 2000
	before, err := b.ovs.cpu()
	if err != nil {
		return cost{}, err
	}
	if _, err := b.ovs.ask(n); err != nil {
		return cost{}, err
	}
	after, err := b.ovs.cpu()
	return cost{cpu: after - before, units: n}, err
}

func (b *bench) ovsAppctl(ctx context.Context) (cost, error) {
	before, err := b.ovs.cpu()
	if err != nil {
		return cost{}, err
	}
	c, err := b.child(ctx, "ovs-appctl", "-t", b.ovs.control(), "ofproto/trace", "br0", query)
	after, later := b.ovs.cpu()
	c.cpu += after - before
	return c, errors.Join(err, later)
}
