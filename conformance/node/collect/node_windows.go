package collect

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

func nodeName(given string) (string, error) {
	if given != "" {
		return safeName(given), nil
	}
	name, err := os.Hostname()
	return safeName(strings.ToLower(name)), err
}

func run(name string) func(context.Context, *node) error {
	return map[string]func(context.Context, *node) error{
		"host": host, "hns-v1": hnsV1, "hns-v2": hnsV2, "host-network": hostNetwork, "ports": ports, "nat": nat, "vfp": vfp,
		"services": services, "processes": processes, "variables": variables, "configuration": configuration, "logs": logs,
	}[name]
}

// addJSON adds a value as JSON with a line for each field, so that a place is a line.
func (n *node) addJSON(path, what, from string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	n.add(path, what, from, b.Bytes())
	return nil
}

// Host is what host.json says: the forms of Get-ComputerInfo.
type hostInfo struct {
	CsName             string
	WindowsProductName string
	WindowsEditionID   string `json:"WindowsEditionId,omitempty"`
	OSDisplayVersion   string `json:",omitempty"`
	// OsVersion is the build with its revision (UBR), which Get-ComputerInfo leaves out.
	OsVersion string
}

func host(_ context.Context, n *node) error {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Windows NT\CurrentVersion`, registry.QUERY_VALUE)
	if err != nil {
		return err
	}
	defer func() { _ = k.Close() }()
	text := func(name string) string { v, _, _ := k.GetStringValue(name); return v }
	h := hostInfo{WindowsProductName: text("ProductName"), WindowsEditionID: text("EditionID"), OSDisplayVersion: text("DisplayVersion")}
	h.CsName, _ = os.Hostname()
	build := text("CurrentBuildNumber")
	if build == "" {
		return errors.New("the registry has no CurrentBuildNumber")
	}
	h.OsVersion = "10.0." + build
	if ubr, _, err := k.GetIntegerValue("UBR"); err == nil {
		h.OsVersion += fmt.Sprintf(".%d", ubr)
	}
	return n.addJSON("host.json", "the computer's name and the build of Windows", `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`, h)
}

// command runs a program of Windows and returns what it prints.
func command(ctx context.Context, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &windows.SysProcAttr{HideWindow: true}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return nil, absent{name + " is not on this node"}
		}
		return out.Bytes(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(out.String()+errs.String()))
	}
	return out.Bytes(), nil
}

// transcript runs commands and writes them with what they print as a console shows them.
func transcript(ctx context.Context, b *bytes.Buffer, name string, args ...string) error {
	out, err := command(ctx, name, args...)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "PS C:\\> %s %s\r\n", strings.TrimSuffix(name, ".exe"), strings.Join(args, " "))
	b.Write(bytes.TrimRight(out, "\r\n"))
	b.WriteString("\r\n")
	return nil
}

func ports(ctx context.Context, n *node) error {
	var b bytes.Buffer
	var errs []error
	for _, family := range []string{"ipv4", "ipv6"} {
		for _, proto := range []string{"tcp", "udp"} {
			errs = append(errs, transcript(ctx, &b, "netsh.exe", "int", family, "show", "excludedportrange", proto),
				transcript(ctx, &b, "netsh.exe", "int", family, "show", "dynamicport", proto))
		}
	}
	if b.Len() > 0 {
		n.add("ports.txt", "reserved and dynamic ports", "netsh", b.Bytes())
	}
	return errors.Join(errs...)
}

func nat(ctx context.Context, n *node) error {
	// As it prints by default: a list, in which nothing is cut.
	out, err := command(ctx, "powershell.exe", "-NoProfile", "-NonInteractive", "-Command", "Get-NetNat")
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return absent{"Get-NetNat shows no NAT"}
	}
	n.add("nat.txt", "WinNAT", "Get-NetNat", out)
	return nil
}

// vfp asks for the rules of each port that the switch lists.
func vfp(ctx context.Context, n *node) error {
	list, err := command(ctx, "vfpctrl.exe", "/list-vmswitch-port")
	if err != nil {
		return err
	}
	n.add("vfp/ports.txt", "ports of the virtual switch", "vfpctrl /list-vmswitch-port", list)
	var errs []error
	var b bytes.Buffer
	for line := range strings.Lines(string(list)) {
		key, port, ok := strings.Cut(line, ":")
		if port = strings.TrimSpace(port); !ok || !strings.EqualFold(strings.TrimSpace(key), "Port name") || port == "" {
			continue
		}
		fmt.Fprintf(&b, "Policy for port : \r\n%s\r\n", port)
		for _, what := range []string{"/list-rule", "/get-rule-counter", "/get-port-state"} {
			out, err := command(ctx, "vfpctrl.exe", "/port", port, what)
			errs = append(errs, err)
			if what == "/list-rule" || what == "/get-port-state" {
				b.Write(out)
			} else if len(out) > 0 {
				n.add("vfp/counters-"+safeName(port)+".txt", "counters of the rules of a port", "vfpctrl /port "+port+" "+what, out)
			}
			b.WriteString("\r\n")
		}
	}
	n.add("vfp/rules.txt", "rules of all ports", "vfpctrl /port GUID /list-rule", b.Bytes())
	return errors.Join(errs...)
}

type service struct {
	Name, DisplayName string
	Status            int
	// PathName is the command line that the service manager starts; Parameters are those of
	// nssm, which starts another.
	PathName string
}

func services(_ context.Context, n *node) error {
	manager, managerErr := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if managerErr == nil {
		defer func() { _ = windows.CloseServiceHandle(manager) }()
	}
	var all []service
	redacted := 0
	for _, name := range programs {
		k, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Services\`+name, registry.QUERY_VALUE)
		if err != nil {
			continue
		}
		path, _, _ := k.GetStringValue("ImagePath")
		display, _, _ := k.GetStringValue("DisplayName")
		_ = k.Close()
		if p, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Services\`+name+`\Parameters`,
			registry.QUERY_VALUE); err == nil {
			// nssm starts what its parameters say.
			app, _, appErr := p.GetStringValue("Application")
			args, _, _ := p.GetStringValue("AppParameters")
			if appErr == nil && app != "" {
				path = app + " " + args
			}
			_ = p.Close()
		}
		path, count := Redact(path)
		redacted += count
		all = append(all, service{Name: name, DisplayName: display, Status: serviceState(manager, managerErr, name), PathName: path})
	}
	if len(all) == 0 {
		return absent{"none of the services is there"}
	}
	if err := n.addJSON("services.json", "services", `HKLM\SYSTEM\CurrentControlSet\Services`, all); err != nil {
		return err
	}
	n.files[len(n.files)-1].file.Redacted = redacted
	if managerErr != nil {
		return fmt.Errorf("the service manager does not say which services run: %w", managerErr)
	}
	return nil
}

// serviceState is a number of ServiceControllerStatus, 0 where it is unknown.
func serviceState(manager windows.Handle, managerErr error, name string) int {
	if managerErr != nil {
		return 0
	}
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0
	}
	s, err := windows.OpenService(manager, text, windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return 0
	}
	defer func() { _ = windows.CloseServiceHandle(s) }()
	var status windows.SERVICE_STATUS
	if windows.QueryServiceStatus(s, &status) != nil {
		return 0
	}
	return int(status.CurrentState)
}

type process struct {
	Name        string
	ProcessID   uint32 `json:"ProcessId"`
	CommandLine string
	// Path is the program's file; Version what Go wrote into it: the module and its version, and
	// the flags of the linker that set a version.
	Path    string `json:",omitempty"`
	Version string `json:",omitempty"`
}

func processes(ctx context.Context, n *node) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
	var all []process
	var errs []error
	redacted := 0
	e := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &e); err == nil && ctx.Err() == nil; err = windows.Process32Next(snapshot, &e) {
		name := windows.UTF16ToString(e.ExeFile[:])
		if !slices.Contains(programs, strings.TrimSuffix(strings.ToLower(name), ".exe")) {
			continue
		}
		p := process{Name: name, ProcessID: e.ProcessID}
		line, path, err := aboutProcess(e.ProcessID)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s (%d): %w", name, e.ProcessID, err))
		}
		count := 0
		p.CommandLine, count = Redact(line)
		redacted += count
		p.Path, p.Version = path, version(path)
		all = append(all, p)
	}
	if len(all) == 0 {
		return errors.Join(append(errs, absent{"none of the programs runs"})...)
	}
	if err := n.addJSON("processes.json", "processes", "NtQueryInformationProcess", all); err != nil {
		return err
	}
	n.files[len(n.files)-1].file.Redacted = redacted
	return errors.Join(errs...)
}

// aboutProcess is a process' command line and the path of its program.
func aboutProcess(id uint32) (line, path string, err error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, id)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	name := make([]uint16, 32768)
	size := uint32(len(name))
	if windows.QueryFullProcessImageName(h, 0, &name[0], &size) == nil {
		path = windows.UTF16ToString(name[:size])
	}
	buf := make([]byte, 128<<10) // a command line has 32767 characters at most
	var got uint32
	if err := windows.NtQueryInformationProcess(h, windows.ProcessCommandLineInformation, unsafe.Pointer(&buf[0]), uint32(len(buf)),
		&got); err != nil {
		return "", path, err
	}
	return (*windows.NTUnicodeString)(unsafe.Pointer(&buf[0])).String(), path, nil
}

// version is what Go wrote into a program, "" for others. The program is not run.
func version(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	v := info.Main.Path + " " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key != "-ldflags" {
			continue
		}
		for _, word := range strings.Fields(s.Value) {
			if name, value, ok := strings.Cut(strings.Trim(word, `'"`), "="); ok && strings.HasSuffix(strings.ToLower(name), "version") {
				v += " " + name[strings.LastIndexByte(name, '.')+1:] + "=" + value
			}
		}
	}
	return strings.TrimSpace(v)
}

func variables(_ context.Context, n *node) error {
	text, redacted := Variables(os.Environ())
	n.add("variables.txt", "variables of the environment", "set", []byte(text))
	n.files[len(n.files)-1].file.Redacted = redacted
	return nil
}

func configuration(ctx context.Context, n *node) error {
	return n.copies(ctx, "etc", "configuration or state", configFiles, 1<<20)
}

func logs(ctx context.Context, n *node) error {
	limit := n.o.LogBytes
	if limit == 0 {
		limit = 1 << 20
	}
	return n.copies(ctx, "logs", "the end of a log", logFiles, limit)
}

// maxCopies bounds the files of a step: a node has some tens.
const maxCopies = 2000

// copies takes files, whole or their ends.
func (n *node) copies(ctx context.Context, below, what string, patterns []string, limit int64) error {
	var errs []error
	seen := map[string]bool{}
	for _, pattern := range patterns {
		names, _ := filepath.Glob(pattern) // the patterns are well formed
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil || !info.Mode().IsRegular() || seen[strings.ToLower(name)] || info.Size() == 0 {
				continue
			}
			if seen[strings.ToLower(name)] = true; len(seen) > maxCopies {
				return errors.Join(append(errs, fmt.Errorf("more than %d files; the others are left out", maxCopies))...)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			data, size, err := end(name, limit)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			data, _ = tail(data, limit)
			var parts []string
			for _, part := range strings.Split(strings.TrimPrefix(filepath.ToSlash(name), "C:/"), "/") {
				parts = append(parts, safeName(part))
			}
			n.addText(below+"/"+strings.Join(parts, "/"), what, name, data, size)
		}
	}
	if len(seen) == 0 {
		return absent{"none of the files is there"}
	}
	return errors.Join(errs...)
}

// end reads the end of a file that others may be writing, a byte more than asked for where there
// is more. size is that of the whole when it is larger.
func end(name string, limit int64) (data []byte, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if info.Size() > limit {
		size = info.Size()
		if _, err := f.Seek(-(limit + 1), io.SeekEnd); err != nil {
			return nil, 0, err
		}
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	return data, size, err
}

// Possible says why this machine cannot be collected from; nil when it can.
func Possible() error { return nil }

// programs are those whose services, processes and versions are taken, lower case, without
// .exe.
var programs = []string{"kubelet", "kube-proxy", "kubeproxy", "flanneld", "flannel", "containerd", "dockerd", "docker", "calico-node",
	"calicofelix", "calicoconfd", "caliconode", "azure-vnet", "azure-cns", "azurecns", "azure-npm",
	"antrea-agent", "ovs-vswitchd", "ovsdb-server", "ovnkube", "hybrid-overlay-node", "rke2", "rke2-agent", "k3s", "wins", "rancher-wins",
	"csi-proxy", "hns", "hostnetsvc", "vmcompute", "winnat", "vfpext", "nvagent", "remoteaccess", "sharedaccess", "dnscache", "mpssvc"}
