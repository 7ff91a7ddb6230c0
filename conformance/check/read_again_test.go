package check

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// TestReadAgain checks files as teams have them against the whole ledger, where a
// second reader of the documents and of the sources found a finding missing or
// superfluous. Each line of want is a level and a claim.
func TestReadAgain(t *testing.T) {
	l := ledger(t)
	docker20 := claims.Target{Kubernetes: "1.20", Release: "2019", Network: "l2bridge", Proxy: "kernelspace", Runtime: "docker"}
	containerd36 := claims.Target{Kubernetes: "1.36", Release: "2022", Network: "l2bridge", Proxy: "kernelspace", Runtime: "containerd"}
	const kubelet = `C:\k\kubelet.exe --hostname-override=win1 --kubeconfig=c:\k\config --cluster-dns=10.96.0.10 --cluster-domain=cluster.local ` +
		`--resolv-conf="" --cgroups-per-qos=false --enforce-node-allocatable="" --windows-service --system-reserved=cpu=500m,memory=2Gi ` +
		`--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS `
	const proxy = `C:\k\kube-proxy.exe --proxy-mode=kernelspace --hostname-override=win1 --kubeconfig=c:\k\config --network-name=cbr0 `
	for _, c := range []struct {
		name, file, text string
		target           claims.Target
		want             []string
	}{
		{"a kubelet of 1.20 with containerd takes the pause image of containerd", "kubelet.cmd",
			kubelet + `--container-runtime=remote --container-runtime-endpoint=npipe:////./pipe/containerd-containerd`, docker20, nil},
		{"a kubelet of 1.20 with Docker needs the pause image", "kubelet.cmd",
			kubelet + `--network-plugin=cni --cni-bin-dir=c:\k\cni --cni-conf-dir=c:\k\cni\config --image-pull-progress-deadline=20m`, docker20,
			[]string{"error pause-image-117"}},
		{"--container-runtime went with 1.27, remote too", "kubelet.cmd",
			kubelet + `--container-runtime=remote --container-runtime-endpoint=npipe:////./pipe/containerd-containerd`, containerd36,
			[]string{"error flags-over-versions"}},
		{"--cni-cache-dir went with the dockershim", "kubelet.cmd",
			kubelet + `--cni-cache-dir=c:\k\cache`, containerd36, []string{"error flags-over-versions"}},
		{"DSR on 2019 in 1.20", "proxy.cmd", proxy + `--enable-dsr=true --feature-gates=WinDSR=true`, docker20,
			[]string{"warning dsr-requirements"}},
		{"DSR on 2022 in 1.36", "proxy.cmd", proxy + `--enable-dsr=true`, containerd36, nil},
		{"DSR in a configuration file", "proxy.yaml",
			"apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: kernelspace\n" +
				"hostnameOverride: win1\nfeatureGates: {WinDSR: true}\nwinkernel: {networkName: cbr0, enableDSR: true}\n", docker20,
			[]string{"warning dsr-requirements"}},
		{"a handler of containerd with Docker", "class.yaml",
			"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: w}\nhandler: runhcs-wcow-process\n" +
				"scheduling: {nodeSelector: {kubernetes.io/os: windows}}\n", docker20, []string{"error runtimeclass-handler"}},
		{"a HostProcess pod may have the network of the node", "pod.yaml",
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n" +
				"  hostNetwork: true\n  securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM'}}\n" +
				"  containers: [{name: a, image: example.com/a, resources: {limits: {cpu: 1, memory: 1Gi}}}]\n", containerd36, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{name: c.file, listed: true, open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(c.text)), nil
			}}
			doc, err := Run(context.Background(), []Input{in}, Options{Targets: []claims.Target{c.target}, Ledger: l})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range doc.Findings {
				got = append(got, string(f.Level)+" "+f.Claim)
			}
			if !slices.Equal(got, c.want) || len(doc.Mistakes) > 0 {
				t.Errorf("found\n%swant %v", lines(doc), c.want)
			}
		})
	}
}
