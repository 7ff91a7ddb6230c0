package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/real/programs/relay"
)

func children(c *psCall) error {
	file := "."
	if v, ok := c.get(0, "-path", "-literalpath"); ok {
		file = show(v)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fileError(c, file, err)
	}
	all := []os.FileInfo{info}
	dir := filepath.Dir(absolute(file))
	if info.IsDir() {
		dir, all = absolute(file), nil
		entries, err := os.ReadDir(file)
		if err != nil {
			return fileError(c, file, err)
		}
		for _, e := range entries {
			if i, err := e.Info(); err == nil {
				all = append(all, i)
			}
		}
	}
	names := truth(c.named["-name"])
	if len(all) > 0 && !names && !c.i.captured {
		c.i.s.printf(
			"\n\n    Directory: %s\n\n\nMode                 LastWriteTime         Length Name\n----                 -------------         ------ ----\n", dir)
	}
	for _, i := range all {
		if names || c.i.captured {
			if err := c.emit(i.Name()); err != nil {
				return err
			}
			continue
		}
		mode, size := "-a----", fmt.Sprint(i.Size())
		if i.IsDir() {
			mode, size = "d-----", ""
		}
		c.i.s.printf("%-14s%22s%15s %s\n", mode, i.ModTime().Format("1/2/2006   3:04 PM"), size, i.Name())
	}
	return nil
}

// item is the object of a file or folder. LinkType and Target are what kubelet.exe asks for
// (kubernetes/kubernetes pkg/volume/util/subpath/subpath_windows.go); of a file that is no
// link they are null.
func item(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	info, err := os.Lstat(file)
	if err != nil {
		return fileError(c, file, err)
	}
	r := &psRecord{order: []string{"FullName", "Name", "Exists", "LastWriteTime", "PSIsContainer", "LinkType", "Target"},
		values: map[string]any{
			"fullname": absolute(file), "name": info.Name(), "exists": true, "lastwritetime": info.ModTime().Format("1/2/2006 3:04:05 PM"),
			"psiscontainer": info.IsDir(), "linktype": nil, "target": nil,
		}}
	if to, err := os.Readlink(file); err == nil {
		r.values["linktype"], r.values["target"] = "SymbolicLink", to
	}
	if info.Mode().IsRegular() {
		r.order = append(r.order, "Length")
		r.values["length"] = info.Size()
	}
	return c.emit(r)
}

func testPath(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	_, statErr := os.Stat(file)
	return c.emit(statErr == nil)
}

func newItem(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	kind, _ := c.get(-1, "-itemtype", "-type")
	if strings.EqualFold(show(kind), "directory") {
		return fileError(c, file, os.MkdirAll(file, 0o755))
	}
	v, _ := c.get(-1, "-value")
	return fileError(c, file, os.WriteFile(file, []byte(show(v)), 0o644))
}

func makeFolder(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	return fileError(c, file, os.MkdirAll(file, 0o755))
}

func removeItem(c *psCall) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(file); err != nil {
		return fileError(c, file, err)
	}
	if truth(c.named["-recurse"]) {
		return fileError(c, file, os.RemoveAll(file))
	}
	return fileError(c, file, os.Remove(file))
}

func copyItem(c *psCall) error {
	from, err := c.path()
	if err != nil {
		return err
	}
	to, ok := c.get(1, "-destination")
	if !ok {
		return refuse("Copy-Item : a destination is missing")
	}
	target := show(to)
	if i, err := os.Stat(target); err == nil && i.IsDir() {
		target = filepath.Join(target, filepath.Base(from))
	}
	in, err := os.Open(from)
	if err != nil {
		return fileError(c, from, err)
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return fileError(c, target, err)
	}
	_, err = io.Copy(out, in)
	return fileError(c, target, errors.Join(err, out.Close()))
}

func setLocation(c *psCall) error {
	dir, err := c.path()
	if err != nil {
		return err
	}
	return fileError(c, dir, os.Chdir(dir))
}

// blockOf is a script block among the arguments.
func (c *psCall) blockOf(names ...string) (nBlock, error) {
	v, _ := c.get(0, names...)
	b, ok := v.(nBlock)
	if !ok {
		return b, refuse("%s : a script block is missing", c.name)
	}
	return b, nil
}

func forEachObject(c *psCall) error {
	b, err := c.blockOf("-process")
	if err != nil {
		return err
	}
	before := c.i.vars["_"]
	defer func() { c.i.vars["_"] = before }()
	return each(c.input, func(v any) error {
		c.i.vars["_"] = v
		return c.i.run(b.body, c.emit)
	})
}

func whereObject(c *psCall) error {
	b, err := c.blockOf("-filterscript")
	if err != nil {
		return err
	}
	before := c.i.vars["_"]
	defer func() { c.i.vars["_"] = before }()
	return each(c.input, func(v any) error {
		c.i.vars["_"] = v
		all, err := c.i.collect(b.body)
		if err != nil || !truth(all) {
			return err
		}
		return c.emit(v)
	})
}

func selectObject(c *psCall) error {
	all := c.input
	if v, ok := c.get(-1, "-first"); ok {
		n, _ := number64(v)
		all = all[:max(0, min(len(all), int(n)))]
	}
	v, ok := c.get(-1, "-expandproperty")
	return each(all, func(x any) error {
		if !ok {
			return c.emit(x)
		}
		p, err := c.i.property(x, strings.ToLower(show(v)))
		if err != nil {
			return err
		}
		return c.emit(p)
	})
}

// psJob is a script block that runs beside the script. Its output is not kept.
type psJob struct {
	id   int
	done chan struct{}
}

func (j *psJob) String() string { return fmt.Sprintf("Job%d", j.id) }

func startJob(c *psCall) error {
	b, err := c.blockOf("-scriptblock")
	if err != nil {
		return err
	}
	j := &psJob{id: len(*c.i.jobs) + 1, done: make(chan struct{})}
	*c.i.jobs = append(*c.i.jobs, j)
	inner := *c.i
	inner.vars, inner.captured = maps.Clone(c.i.vars), true
	go func() {
		defer close(j.done)
		_ = inner.run(b.body, func(any) error { return nil })
	}()
	return c.emit(j)
}

func getJobs(c *psCall) error {
	for _, j := range *c.i.jobs {
		if err := c.emit(j); err != nil {
			return err
		}
	}
	return nil
}

func waitJobs(c *psCall) error {
	for _, v := range append(slices.Clone(c.input), c.args...) {
		j, ok := v.(*psJob)
		if !ok {
			continue
		}
		select {
		case <-j.done:
		case <-c.i.ctx.Done():
			return c.i.ctx.Err()
		}
	}
	return nil
}

// asked is a cmdlet that winlab answers, which has the model of what it shows.
func asked(cmdlet string, tool ...string) func(*psCall) error {
	return func(c *psCall) error {
		at := os.Getenv(relay.Address)
		if at == "" {
			return refuse("winlab: %s is only for machines that winlab simulates", cmdlet)
		}
		code, out, errs, err := relay.Ask(c.i.ctx, at, append(slices.Clone(tool), c.raw...)...)
		if err != nil {
			return refuse("%s : %v", cmdlet, err)
		}
		fmt.Fprint(c.i.s.err, errs)
		c.i.ok = code == 0
		for line := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(out, "\r\n", "\n"), "\n"), "\n") {
			if line == "" && (code != 0 || out == "") {
				continue
			}
			if err := c.emit(line); err != nil {
				return err
			}
		}
		return nil
	}
}

// testConnection is Test-NetConnection NAME -Port N (the form is that of Microsoft's page
// of the cmdlet).
func testConnection(c *psCall) error {
	v, ok := c.get(0, "-computername")
	port, withPort := c.get(1, "-port")
	if !ok || !withPort {
		return refuse("winlab: Test-NetConnection here takes a name and -Port")
	}
	host := show(v)
	a, err := netip.ParseAddr(host)
	if err != nil {
		all, err := c.i.s.addresses(c.i.ctx, host)
		if err != nil || len(all) == 0 {
			return refuse("WARNING: Name resolution of %s failed", host)
		}
		a = all[0]
	}
	ctx, cancel := context.WithTimeout(c.i.ctx, 21*time.Second) // a SYN and its repetitions
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), show(port)))
	source := ""
	if err == nil {
		source, _, _ = net.SplitHostPort(conn.LocalAddr().String())
		_ = conn.Close()
	} else {
		c.i.s.printf("WARNING: TCP connect to (%s : %s) failed\n", a, show(port))
	}
	t := &psRecord{order: []string{"ComputerName", "RemoteAddress", "RemotePort", "SourceAddress", "TcpTestSucceeded"},
		values: map[string]any{"computername": host, "remoteaddress": a.String(), "remoteport": port, "sourceaddress": source,
			"tcptestsucceeded": err == nil}}
	return c.emit(t)
}

// adapters and netAddresses give the addresses of the machine, with loopback last as on
// Windows.
func adapters(c *psCall) error {
	all, err := net.Interfaces()
	if err != nil {
		return refuse("Get-NetAdapter : %v", err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue // Get-NetAdapter does not show it
		}
		r := &psRecord{order: []string{"Name", "ifIndex", "Status", "MacAddress"},
			values: map[string]any{"name": i.Name, "ifindex": int64(i.Index), "status": "Up",
				"macaddress": strings.ToUpper(strings.ReplaceAll(i.HardwareAddr.String(), ":", "-"))}}
		if err := c.emit(r); err != nil {
			return err
		}
	}
	return nil
}

func netAddresses(c *psCall) error {
	all, err := net.Interfaces()
	if err != nil {
		return refuse("Get-NetIPAddress : %v", err)
	}
	for _, i := range all {
		wanted := !c.piped || slices.ContainsFunc(c.input, func(v any) bool {
			r, ok := v.(*psRecord)
			return ok && r.values["ifindex"] == int64(i.Index)
		})
		addrs, _ := i.Addrs()
		slices.SortStableFunc(addrs, func(a, b net.Addr) int { // IPv6 first
			return strings.Count(b.String(), ":") - strings.Count(a.String(), ":")
		})
		for _, x := range addrs {
			p, err := netip.ParsePrefix(x.String())
			if err != nil || !wanted {
				continue
			}
			family := "IPv4"
			if p.Addr().Is6() {
				family = "IPv6"
			}
			if only, ok := c.get(-1, "-addressfamily"); ok && !strings.EqualFold(show(only), family) {
				continue
			}
			r := &psRecord{order: []string{"IPAddress", "InterfaceIndex", "InterfaceAlias", "AddressFamily", "PrefixLength"}, values: map[string]any{
				"ipaddress": p.Addr().String(), "interfaceindex": int64(i.Index), "interfacealias": i.Name, "addressfamily": family,
				"prefixlength": int64(p.Bits())}}
			if err := c.emit(r); err != nil {
				return err
			}
		}
	}
	return nil
}
