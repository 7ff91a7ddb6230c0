package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// targetFlags name one setting; what is not given stays open.
type targetFlags struct{ kubernetes, windows, network, plugin, proxy, runtime string }

// add gives a command the flags, with completion.
func (f *targetFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.kubernetes, "kubernetes", "k", "", "a `version` of Kubernetes, such as 1.20")
	fs.StringVarP(&f.windows, "windows", "w", "", "a `release` of Windows Server, such as 2019, or a build, such as 10.0.17763.1432")
	fs.StringVarP(&f.network, "network", "n", "", "a `type` of HNS network, such as overlay, or the name of a lab")
	fs.StringVar(&f.plugin, "plugin", "", "a CNI `plugin`, such as flannel or flannel@0.12.0")
	fs.StringVar(&f.proxy, "proxy", "", "a `mode` of kube-proxy, such as kernelspace-dsr")
	fs.StringVarP(&f.runtime, "runtime", "r", "", "a container `runtime`, such as containerd or containerd@1.6.8")
	fixed(cmd, "kubernetes", claims.Minors()...)
	fixed(cmd, "windows", releaseNames()...)
	fixed(cmd, "network", append(networkNames(), designNames()...)...)
	fixed(cmd, "plugin", pluginNames()...)
	fixed(cmd, "proxy", proxyNames()...)
	fixed(cmd, "runtime", runtimeNames...)
}

var runtimeNames = []string{"docker", "containerd"}

func releaseNames() []string {
	var names []string
	for _, r := range claims.Releases() {
		names = append(names, r.Name)
	}
	return names
}

// ofDesigns lists what the designs have, each once, in their order.
func ofDesigns(of func(claims.Design) []string) []string {
	var names []string
	for _, d := range claims.Designs {
		for _, s := range of(d) {
			if !slices.Contains(names, s) {
				names = append(names, s)
			}
		}
	}
	return names
}

func networkNames() []string {
	return ofDesigns(func(d claims.Design) []string { return []string{d.Network} })
}

func designNames() []string {
	return ofDesigns(func(d claims.Design) []string { return []string{d.Name} })
}

func pluginNames() []string {
	return ofDesigns(func(d claims.Design) []string { return []string{d.Plugin} })
}

func proxyNames() []string { return ofDesigns(func(d claims.Design) []string { return d.Proxies }) }

// target is the setting that the flags name.
func (f *targetFlags) target() (claims.Target, error) {
	var t claims.Target
	if f.kubernetes != "" {
		v, err := claims.ParseVersion(strings.TrimPrefix(f.kubernetes, "v"))
		if err != nil || len(v) < 2 {
			return t, usagef("--kubernetes %s: %q is not a version of Kubernetes; write for example 1.20", f.kubernetes, f.kubernetes)
		}
		if minors := claims.Minors(); !slices.Contains(minors, v[:2].String()) {
			return t, usagef("--kubernetes %s: the documents here are about Kubernetes %s and %s to %s", f.kubernetes, minors[0], minors[1],
				minors[len(minors)-1])
		}
		t.Kubernetes = v.String()
	}
	if f.windows != "" {
		r, ok := claims.ReleaseNamed(f.windows)
		if !ok {
			return t, usagef("--windows: no release of Windows Server is called %q here%s", f.windows, strict.DidYouMean(f.windows, releaseNames()))
		}
		t.Release = r.Name
		if strings.Count(f.windows, ".") == 3 {
			t.Build = f.windows
		}
	}
	networks := networkNames()
	if i := slices.IndexFunc(claims.Designs, func(d claims.Design) bool { return d.Name == f.network }); i >= 0 {
		t.Network, t.Plugin = claims.Designs[i].Network, claims.Designs[i].Plugin
	} else if err := nameAmong("network", f.network, append(networks, designNames()...), &t.Network); err != nil {
		return t, err
	}
	plugin, version, _ := strings.Cut(f.plugin, "@")
	if err := nameAmong("plugin", plugin, pluginNames(), &t.Plugin); err != nil {
		return t, err
	}
	if version != "" {
		if _, err := claims.ParseVersion(version); err != nil {
			return t, usagef("--plugin %s: %v", f.plugin, err)
		}
		t.PluginVersion = version
	}
	if err := nameAmong("proxy", f.proxy, proxyNames(), &t.Proxy); err != nil {
		return t, err
	}
	runtime, version, _ := strings.Cut(f.runtime, "@")
	if err := nameAmong("runtime", runtime, runtimeNames, &t.Runtime); err != nil {
		return t, err
	}
	if version != "" {
		if _, err := claims.ParseVersion(version); err != nil {
			return t, usagef("--runtime %s: %v", f.runtime, err)
		}
		t.RuntimeVersion = version
	}
	return t, nil
}

// nameAmong stores a value that is one of the names; "" stores nothing.
func nameAmong(flag, value string, names []string, into *string) error {
	switch {
	case value == "":
		return nil
	case !slices.Contains(names, value):
		return usagef("--%s: there is no %s %q%s", flag, flag, value, strict.DidYouMean(value, names))
	}
	*into = value
	return nil
}
