package cluster

import (
	"os"
	"path/filepath"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// writeKubeletConfig writes a kubelet's configuration file. path says how its programs
// name a file of this machine.
func (c *Cluster) writeKubeletConfig(file string, n *kube.Node, runtime string, path func(string) string) error {
	no, yes := false, true
	name := "kubelet-" + n.Name
	k := kubelet.KubeletConfiguration{
		TypeMeta:                 metav1.TypeMeta{APIVersion: kubelet.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		ContainerRuntimeEndpoint: runtime,
		Authentication: kubelet.KubeletAuthentication{
			X509:      kubelet.KubeletX509Authentication{ClientCAFile: path(c.pki.ca())},
			Webhook:   kubelet.KubeletWebhookAuthentication{Enabled: &yes},
			Anonymous: kubelet.KubeletAnonymousAuthentication{Enabled: &no},
		},
		Authorization:     kubelet.KubeletAuthorization{Mode: kubelet.KubeletAuthorizationModeWebhook},
		TLSCertFile:       path(c.pki.crt(name)),
		TLSPrivateKeyFile: path(c.pki.keyOf(name)),
		ClusterDomain:     c.lab.Domain,
		// A node that was killed is seen sooner than with the default of five minutes.
		NodeStatusReportFrequency:   metav1.Duration{Duration: time.Minute},
		FailSwapOn:                  &no,
		ImageGCHighThresholdPercent: func() *int32 { all := int32(100); return &all }(),
		EvictionHard: map[string]string{
			// The disk is this machine's, and no concern of the cluster.
			"memory.available": "100Mi",
		},
	}
	if c.lab.DNSIP.IsValid() {
		k.ClusterDNS = []string{c.lab.DNSIP.String()}
	}
	k.CgroupsPerQOS = &no
	k.EnforceNodeAllocatable = []string{"none"}
	if n.Windows != nil {
		empty := ""
		k.ResolverConfig = &empty
		k.VolumePluginDir = `C:\usr\libexec\kubernetes\kubelet-plugins\volume\exec`
	} else {
		dir := filepath.Dir(file)
		k.FeatureGates = map[string]bool{"KubeletInUserNamespace": true}
		k.FailCgroupV1 = &no
		k.LocalStorageCapacityIsolation = &no
		k.MakeIPTablesUtilChains = &no
		k.PodLogsDir = filepath.Join(dir, "pods")
		k.VolumePluginDir = filepath.Join(dir, "plugins")
	}
	text, err := yaml.Marshal(k)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// Simulated is the label of nodes that are none: whoever sees such a cluster shall not
// take it for a real one.
const Simulated = "winlab.dev/simulated"

// kubeletFlags are those that the configuration file cannot say.
func kubeletFlags(n *kube.Node, config, kubeconfig, root string) []string {
	address := n.Address.String()
	if n.Address6.IsValid() {
		address += "," + n.Address6.String()
	}
	return []string{"--config=" + config, "--kubeconfig=" + kubeconfig, "--hostname-override=" + n.Name, "--node-ip=" + address, "--root-dir=" + root, "--cert-dir=" + root + "/pki", "--node-labels=" + Simulated + "=true", "--v=2"}
}
