package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
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
		// A node that had too little memory takes pods again after this time.
		EvictionPressureTransitionPeriod: metav1.Duration{Duration: time.Minute},
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
		k.EnableSystemLogQuery = &yes
		k.FeatureGates = map[string]bool{"NodeLogQuery": true} // by itself since 1.36
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

// What nodes say of themselves, as labels: that they are simulated, so that such a
// cluster is not taken for a real one; of which lab; and what of its network no program can see
// from outside, as winlab run names it.
const (
	Simulated    = "winlab.dev/simulated"
	labLabel     = "winlab.dev/lab"
	networkLabel = "winlab.dev/network"
	pluginLabel  = "winlab.dev/plugin"
	proxyLabel   = "winlab.dev/proxy"
)

// labelsOf are the labels of the nodes of a lab. A name that is not a valid label value is
// left out.
func labelsOf(l *lab.Cluster) map[string]string {
	labels := map[string]string{Simulated: "true"}
	for key, value := range map[string]string{
		labLabel:     l.Plan.File.Lab.Metadata.Name,
		networkLabel: l.Plan.Network.Type,
		pluginLabel:  l.Plan.Network.Name,
		proxyLabel:   strings.ReplaceAll(l.ProxyName(), ", DSR", "-dsr"),
	} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			labels[key] = value
		}
	}
	return labels
}

// kubeletFlags are those that the configuration file cannot say.
func (c *Cluster) kubeletFlags(n *kube.Node, config, kubeconfig, root string) []string {
	address := n.Address.String()
	if n.Address6.IsValid() {
		address += "," + n.Address6.String()
	}
	return []string{"--config=" + config, "--kubeconfig=" + kubeconfig, "--hostname-override=" + n.Name, "--node-ip=" + address,
		"--root-dir=" + root, "--cert-dir=" + root + "/pki", "--node-labels=" + labels.FormatLabels(c.labels), "--v=2"}
}
