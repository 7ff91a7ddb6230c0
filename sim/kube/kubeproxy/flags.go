package kubeproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
)

// flag is one flag of kube-proxy on Windows
// (kubernetes/kubernetes cmd/kube-proxy/app/init_windows.go and options.go).
type flag struct {
	name string
	// since is the first minor version that has it.
	since int
	// boolean flags may have no value.
	boolean bool
	example string
	// set reads the value; nil means that the flag changes nothing here.
	set func(p *flagParser, value string) error
}

// flagParser reads one command line.
type flagParser struct {
	c Config
	v kube.Version
	// args are those not read yet, seen the values of flags by name.
	args []string
	seen map[string]string
}

var flags = []flag{
	{name: "enable-dsr", since: 14, boolean: true, example: "--enable-dsr=true", set: func(p *flagParser, s string) (err error) {
		p.c.EnableDSR, err = boolean(s)
		return err
	}},
	{name: "feature-gates", since: 14, example: "--feature-gates=WinDSR=true,WinOverlay=true", set: (*flagParser).gates},
	{name: "source-vip", since: 14, example: "--source-vip=10.244.1.3", set: func(p *flagParser, s string) error {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return fmt.Errorf("%q is not an address", s)
		}
		p.c.SourceVIP = a
		return nil
	}},
	{name: "network-name", since: 14, example: "--network-name=cbr0", set: func(p *flagParser, s string) error {
		p.c.NetworkName = s
		return nil
	}},
	{name: "hostname-override", since: 14, example: "--hostname-override=win1", set: func(p *flagParser, s string) error {
		// kube-proxy trims the name and makes it lower case (pkg/util/node GetHostname).
		if p.c.hostnameOverride = strings.ToLower(strings.TrimSpace(s)); p.c.hostnameOverride == "" {
			return errors.New("the name is empty")
		}
		return nil
	}},
	{name: "forward-healthcheck-vip", since: 24, boolean: true, example: "--forward-healthcheck-vip=true",
		set: func(p *flagParser, s string) (err error) {
			p.c.forwardHealthCheckVIP, err = boolean(s)
			return err
		}},
	{name: "root-hnsendpoint-name", since: 24, example: "--root-hnsendpoint-name=cbr0_ep", set: func(p *flagParser, s string) error {
		p.c.rootHnsEndpointName = s
		return nil
	}},
	{name: "healthz-bind-address", since: 14, example: "--healthz-bind-address=0.0.0.0:10256", set: func(p *flagParser, s string) error {
		a, err := netip.ParseAddrPort(s)
		if err != nil || a.Port() == 0 {
			return fmt.Errorf("%q is not an address and port", s)
		}
		p.c.healthzPort = a.Port()
		return nil
	}},
	{name: "proxy-mode", since: 14, example: "--proxy-mode=kernelspace", set: func(p *flagParser, s string) error {
		if Mode(s) != p.c.Mode {
			return fmt.Errorf("the mode is %s; write %s, or leave the flag out", p.c.Mode, s)
		}
		return nil
	}},
	// These do not change what is programmed on Windows.
	{name: "bind-address", since: 14}, {name: "cluster-cidr", since: 14}, {name: "kubeconfig", since: 14},
	{name: "config-sync-period", since: 14}, {name: "iptables-min-sync-period", since: 14}, {name: "iptables-sync-period", since: 14},
	{name: "metrics-bind-address", since: 14}, {name: "masquerade-all", since: 14, boolean: true},
	{name: "profiling", since: 14, boolean: true},
	{name: "v", since: 14}, {name: "logtostderr", since: 14, boolean: true}, {name: "alsologtostderr", since: 14, boolean: true},
	{name: "log-dir", since: 14}, {name: "log-file", since: 14}, {name: "windows-service", since: 14, boolean: true},
}

func boolean(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return b, nil
}

func (p *flagParser) gates(s string) error {
	var errs []error
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		on, err := boolean(strings.TrimSpace(value))
		if !found || err != nil {
			errs = append(errs, fmt.Errorf("%q: write the gate as %s=true", part, name))
			continue
		}
		g, known := featureGates[featureGate(name)]
		switch {
		case !known:
			// Other gates do not concern the data plane of Windows.
		case !g.knownIn(p.v):
			errs = append(errs, fmt.Errorf("kube-proxy %s does not have the gate %s", p.v, name))
			continue
		case g.lockedIn(p.v) && on != g.onIn(p.v):
			errs = append(errs, fmt.Errorf("kube-proxy %s has the gate %s always on: leave it out", p.v, name))
			continue
		}
		p.c.featureGates[name] = on
	}
	return errors.Join(errs...)
}

// ParseFlags reads kube-proxy's flags as they are on its command line. The mode
// defaults to kernelspace. The error, if any, lists every mistake (errors.Join).
func ParseFlags(mode Mode, args []string, v kube.Version) (Config, error) {
	if mode == "" {
		mode = ModeKernelspace
	}
	p := &flagParser{
		v: v, args: args, seen: map[string]string{},
		c: Config{Mode: mode, rootHnsEndpointName: defaultRootEndpoint, featureGates: map[string]bool{}},
	}
	errs := []error{mode.check(v)}
	for len(p.args) > 0 {
		errs = append(errs, p.next())
	}
	if p.c.EnableDSR && mode == ModeKernelspace && !p.c.enabled(gateWinDSR, v) {
		errs = append(errs,
			fmt.Errorf("--enable-dsr: kube-proxy %s does not start with this flag while the gate WinDSR is off; add --feature-gates=WinDSR=true", v))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	return p.c, nil
}

// check reports whether a version has the mode.
func (m Mode) check(v kube.Version) error {
	switch m {
	case ModeKernelspace:
		_, err := behaviourOf(v)
		return err
	case ModeUserspace:
		if v.AtLeast(userspaceRemoved) {
			return errUserspaceRemoved(v)
		}
	case modeIptables, ModeNone:
	default:
		return fmt.Errorf("kube-proxy mode %q: write one of %s, %s, %s", m, ModeKernelspace, ModeUserspace, ModeNone)
	}
	return nil
}

// next reads the next flag, and the argument after it where that is its value.
func (p *flagParser) next() error {
	arg := p.take()
	name, value, hasValue, err := splitFlag(arg)
	if err != nil {
		return err
	}
	f, err := p.lookup(arg, name)
	if err != nil {
		return err
	}
	if !hasValue {
		if value, err = p.value(arg, f); err != nil {
			return err
		}
	}
	if err := f.single(arg, value); err != nil {
		return err
	}
	// Lists of gates add up (k8s.io/component-base/cli/flag MapStringBool).
	if before, dup := p.seen[name]; dup && before != value && name != "feature-gates" {
		return fmt.Errorf("%s: --%s is given twice, before with %s", arg, name, before)
	}
	p.seen[name] = value
	if f.set == nil {
		return nil
	}
	if err := f.set(p, value); err != nil {
		return fmt.Errorf("%s: %w; write %s", arg, err, f.usage())
	}
	return nil
}

// take removes the next argument.
func (p *flagParser) take() string {
	arg := strings.TrimSpace(p.args[0])
	p.args = p.args[1:]
	return arg
}

// lookup finds a flag of the version.
func (p *flagParser) lookup(arg, name string) (flag, error) {
	i := slices.IndexFunc(flags, func(f flag) bool { return f.name == name })
	switch {
	case i < 0:
		return flag{}, unknownFlag(arg, name)
	case p.v.Minor < flags[i].since:
		return flag{}, fmt.Errorf("%s: kube-proxy %s does not have this flag; 1.%d introduced it", arg, p.v, flags[i].since)
	}
	return flags[i], nil
}

// value is the value of a flag whose own argument does not contain it.
func (p *flagParser) value(arg string, f flag) (string, error) {
	switch {
	case f.boolean:
		return "true", nil
	case len(p.args) > 0 && !strings.HasPrefix(strings.TrimSpace(p.args[0]), "-"):
		return p.take(), nil
	}
	return "", fmt.Errorf("%s: the value is missing; write %s", arg, f.usage())
}

// single refuses a value that holds a further flag by mistake: "--a=1 --b=2".
func (f flag) single(arg, value string) error {
	if at := strings.Index(value, " --"); at >= 0 {
		return fmt.Errorf("%s: two flags in one item; write %q and %q", arg,
			"--"+f.name+"="+strings.TrimSpace(value[:at]), strings.TrimSpace(value[at:]))
	}
	if at := strings.Index(value, "--"); at > 0 && f.set != nil {
		return fmt.Errorf("%s: two flags without a space between them; write %q and %q", arg,
			"--"+f.name+"="+value[:at], value[at:])
	}
	return nil
}

func (f flag) usage() string {
	if f.example != "" {
		return f.example
	}
	return "--" + f.name + "=VALUE"
}

// splitFlag takes "--name=value", "-name=value" or "--name" apart.
func splitFlag(arg string) (name, value string, hasValue bool, err error) {
	rest, ok := strings.CutPrefix(arg, "--")
	if !ok {
		rest, ok = strings.CutPrefix(arg, "-")
		if ok && len(rest) > 1 && !strings.HasPrefix(rest, "v=") {
			return "", "", false, fmt.Errorf("%s: flags begin with two dashes; write -%s", arg, arg)
		}
	}
	if !ok || rest == "" {
		return "", "", false, fmt.Errorf("%q is not a flag; write flags as --enable-dsr=true", arg)
	}
	name, value, hasValue = strings.Cut(rest, "=")
	if n, v, spaced := strings.Cut(name, " "); spaced && !hasValue {
		return n, strings.TrimSpace(v), true, nil
	}
	return strings.TrimSpace(name), strings.TrimSpace(value), hasValue, nil
}

// unknownFlag says what is wrong with a name that is not a flag's: written
// without a space before its value, misspelt, or a flag of a config file.
func unknownFlag(arg, name string) error {
	if name == "config" {
		return fmt.Errorf("%s: winlab does not read kube-proxy's configuration file; write its settings as flags", arg)
	}
	plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	for _, f := range flags {
		if plain == f.name || strings.ReplaceAll(plain, "-", "") == strings.ReplaceAll(f.name, "-", "") {
			return fmt.Errorf("%s: kube-proxy has no flag --%s; write %s", arg, name, f.usage())
		}
	}
	for _, f := range flags {
		if rest, ok := strings.CutPrefix(plain, f.name); ok && len(f.name) > 1 {
			if f.example != "" {
				return fmt.Errorf("%s: %q is attached to the flag --%s; write %s", arg, strings.TrimPrefix(rest, "-"), f.name, f.usage())
			}
		}
	}
	var known []string
	for _, f := range flags {
		if f.set != nil {
			known = append(known, "--"+f.name)
		}
	}
	return fmt.Errorf("%s: kube-proxy on Windows has no flag --%s, or winlab does not know it; it knows %s", arg, name,
		strings.Join(known, ", "))
}
