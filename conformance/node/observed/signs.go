package observed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// sign is a line that is worth remembering.
type sign struct {
	id string
	// all of one of the lists must be in the line, in lower case.
	parts [][]string
	doc   string
}

// signs are the lines that troubleshooting chapters quote, and those that the
// programs write in the same situations.
var signs = []sign{
	{"flanneld-waits", [][]string{{"waiting for the network to be created"}},
		"start.ps1 waits for flanneld's HNS network (microsoft/SDN Kubernetes/windows/helper.psm1 WaitForNetwork)"},
	{"flanneld-network", [][]string{{"waiting to get managementip from hns network"}, {"waiting to get net interface for hns network"}},
		"flanneld waits for the management address of the HNS network (flannel-io/flannel pkg/backend/hostgw/hostgw_windows.go)"},
	{"flanneld-runs", [][]string{{"watching for new subnet leases"}, {"running backend"}, {"subnet added:"}},
		"flanneld has its network and follows the other nodes"},
	{"forwarding-failed", [][]string{{"failed to enable forwarding"}},
		"flanneld could not turn on forwarding (flannel-io/flannel pkg/backend/hostgw/hostgw_windows.go)"},
	{"port-taken", [][]string{{"the specified port already exists"}},
		"HNS refused a load balancer: the port is taken on the node (0x803b0013)"},
	{"subnet-env", [][]string{{"subnet.env", "cannot find"}, {"subnet.env", "no such file"}},
		"the flannel plugin misses subnet.env (flannel-io/cni-plugin flannel.go loadFlannelSubnetEnv)"},
	{"wincat", [][]string{{"wincat not found"}, {"wincat.exe", "cannot find"}, {"wincat", "executable file not found"}},
		"port-forward in the kubelet needs wincat in the pause image"},
	{"os-mismatch", [][]string{{"operating system does not match the host operating system"}, {"no matching manifest for windows/amd64"},
		{"0xc0370101"}, {"container operating system version doesn't match"}, {"no match for platform in manifest"}},
		"the image is for another build of Windows"},
	{"pull-timeout", [][]string{{"pull", "i/o timeout"}, {"pull", "client.timeout exceeded"}, {"pull", "connection attempt failed"},
		{"pull", "proxyconnect"}},
		"an image cannot be downloaded: nothing answers"},
	{"endpoint-gone", [][]string{{"local endpoint not found"}, {"hns endpoint", "not found"}, {"endpoint was not found"}},
		"an HNS endpoint of a pod of this node is not there"},
	{"no-network", [][]string{{"unable to find hns network specified by"}, {"hnsgetnetworkbyname", "not found"},
		{"failed to find network", "hns"}},
		"kube-proxy does not find its HNS network (kubernetes/kubernetes pkg/proxy/winkernel)"},
	{"source-vip", [][]string{{"source vip endpoint creation failed"}},
		"kube-proxy cannot make the source VIP's endpoint (kubernetes/kubernetes pkg/proxy/winkernel)"},
}

// triggers are short texts of which every sign has one: most lines have none
// and need no further look.
var triggers = []string{"waiting ", "watching ", "running backend", "subnet", "wincat", "operating system", "manifest", "forwarding",
	"specified port", "0xc0370101", "pull", "endpoint", "network"}

// maxLine is how many bytes of a line are looked at: JSON in a log is long.
const maxLine = 64 << 10

// signs looks for known lines.
func (r *reader) findSigns(l dump.Lines) {
	for i, text := range l.Text {
		if len(text) < 10 {
			continue
		}
		if len(text) > maxLine {
			r.node.Cut = append(r.node.Cut, Text{Value: fmt.Sprintf("line %d has %d characters; messages were looked for in the first %d", l.First+i,
				len(text), maxLine), Place: l.Place(i)})
			text = text[:maxLine]
		}
		low := strings.ToLower(text)
		if mayHaveHNSErrors(low) {
			r.findHNSErrors(l.First+i, text)
		}
		if strings.Contains(low, createEndpoint) {
			r.request(l.First+i, text)
		}
		if strings.Contains(low, "not found on network") {
			r.findNotOnNetwork(l.First+i, text)
		}
		if !dump.HasAny(low, triggers...) {
			continue
		}
		for _, s := range signs {
			if slices.ContainsFunc(s.parts, func(parts []string) bool {
				return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(low, p) })
			}) {
				r.sign(s.id, l.Place(i))
			}
		}
	}
}

func (r *reader) sign(id string, p Place) {
	for i := range r.node.signs {
		if s := &r.node.signs[i]; s.id == id && s.Place.File == p.File {
			s.Count++
			s.last = max(s.last, p.Line)
			return
		}
	}
	r.node.signs = append(r.node.signs, Sign{id: id, Place: p, Count: 1, last: p.Line})
	r.addKind("known messages")
}
