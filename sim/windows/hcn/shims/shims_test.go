package shims

import (
	"bytes"
	"debug/pe"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// exports are what hcsshim and hnslib load (hcn/zsyscall_windows.go,
// internal/hns/zsyscall_windows.go, internal/vmcompute/zsyscall_windows.go) and what
// Go's runtime loads.
var exports = map[string][]string{
	"bcryptprimitives": {"ProcessPrng"},
	"iphlpapi":         {"GetAdaptersAddresses", "wine_iphlpapi.GetIpForwardTable"}, // ws2_32.dll of Wine needs the latter
	// github.com/JeffAshton/win_pdh, which the kubelet uses
	"pdh": {"PdhAddCounterW", "PdhAddEnglishCounterW", "PdhCloseQuery", "PdhCollectQueryData", "PdhGetFormattedCounterArrayW",
		"PdhGetFormattedCounterValue", "PdhOpenQuery", "PdhValidatePathW"},
	"vmcompute": {"HNSCall", "HcsCloseComputeSystem", "HcsGetComputeSystemProperties", "HcsModifyComputeSystem",
		"HcsOpenComputeSystem", "HcsRegisterComputeSystemCallback", "HcsUnregisterComputeSystemCallback"},
	"computenetwork": {
		"HcnCloseEndpoint", "HcnCloseLoadBalancer", "HcnCloseNamespace", "HcnCloseNetwork", "HcnCloseSdnRoute",
		"HcnCreateEndpoint", "HcnCreateLoadBalancer", "HcnCreateNamespace", "HcnCreateNetwork", "HcnCreateSdnRoute",
		"HcnDeleteEndpoint", "HcnDeleteLoadBalancer", "HcnDeleteNamespace", "HcnDeleteNetwork", "HcnDeleteSdnRoute",
		"HcnEnumerateEndpoints", "HcnEnumerateLoadBalancers", "HcnEnumerateNamespaces", "HcnEnumerateNetworks", "HcnEnumerateSdnRoutes",
		"HcnModifyEndpoint", "HcnModifyLoadBalancer", "HcnModifyNamespace", "HcnModifyNetwork", "HcnModifySdnRoute",
		"HcnOpenEndpoint", "HcnOpenLoadBalancer", "HcnOpenNamespace", "HcnOpenNetwork", "HcnOpenSdnRoute",
		"HcnQueryEndpointProperties", "HcnQueryLoadBalancerProperties", "HcnQueryNamespaceProperties", "HcnQueryNetworkProperties",
		"HcnQuerySdnRouteProperties",
	},
}

func TestBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("-short compiles nothing")
	}
	dir := t.TempDir()
	paths, err := Build(t.Context(), dir)
	if errors.Is(err, ErrNoCompiler) && os.Getenv("WINLAB_NEED_WINE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := BuildTool(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if f, err := pe.Open(filepath.Join(dir, Tool)); err != nil || f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		t.Errorf("%s: %v", Tool, err)
	}
	for i, name := range dlls {
		if paths[i] != filepath.Join(dir, name+".dll") {
			t.Errorf("path %s", paths[i])
		}
		text, err := os.ReadFile(paths[i])
		if err != nil {
			t.Fatal(err)
		}
		f, err := pe.NewFile(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
			t.Errorf("%s is for machine %#x", name, f.Machine)
		}
		for _, e := range exports[name] {
			if !slices.Contains(names(text), e) {
				t.Errorf("%s.dll does not export %s", name, e)
			}
		}
	}
}

// names returns the strings of a file; the export table holds each name once, and
// where a function is forwarded to.
func names(text []byte) []string {
	var all []string
	for _, part := range bytes.Split(text, []byte{0}) {
		all = append(all, string(part))
	}
	return all
}
