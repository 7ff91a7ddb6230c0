package lab_test

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// TestACLOrder: whether ACLs come before load balancers with DSR is not public. A flow to a
// Service depends on it where an ACL names the Service's address or the backend's; without
// DSR, and straight to a pod, it does not.
func TestACLOrder(t *testing.T) {
	const dsr, noDSR = `, "--enable-dsr=true"`, ""
	acl := func(action, remote, priority string) string {
		return "    - {node: win1, addPolicy: {kind: endpoint, pod: client, type: ACL, settings: {Action: " + action +
			", Direction: Out, Protocols: '6', " + remote + "RuleType: Switch, Priority: " + priority + "}}}\n"
	}
	for _, tt := range []struct{ name, proxy, acls, to, want string }{
		{"the Service is blocked", dsr, acl("Block", "RemoteAddresses: 10.96.0.0/12, ", "100") + acl("Allow", "", "200"), "svc/win-webserver:80",
			"varies open-question"},
		{"pods are blocked", dsr, acl("Block", "RemoteAddresses: 10.244.0.0/16, ", "100") + acl("Allow", "", "200"), "svc/win-webserver:80",
			"varies open-question"},
		{"only pods are allowed", dsr, acl("Allow", "RemoteAddresses: 10.244.0.0/16, ", "100") + acl("Block", "", "200"), "svc/win-webserver:80",
			"varies open-question"},
		{"both are allowed", dsr, acl("Allow", "RemoteAddresses: 10.0.0.0/8, ", "100") + acl("Block", "", "200"), "svc/win-webserver:80",
			"delivered ok"},
		{"both are blocked", dsr, acl("Block", "", "100"), "svc/win-webserver:80", "dropped acl-block"},
		{"straight to a pod", dsr, acl("Block", "RemoteAddresses: 10.96.0.0/12, ", "100") + acl("Allow", "", "200"), "pod/peer:80",
			"delivered ok"},
		{"the Service is blocked, no DSR", noDSR, acl("Block", "RemoteAddresses: 10.96.0.0/12, ", "100") + acl("Allow", "", "200"),
			"svc/win-webserver:80", "dropped acl-block"},
		{"pods are blocked, no DSR", noDSR, acl("Block", "RemoteAddresses: 10.244.0.0/16, ", "100") + acl("Allow", "", "200"),
			"svc/win-webserver:80", "delivered ok"},
	} {
		nodes := "  - {name: win1, build: 10.0.20348.2762}\n  - {name: win2, build: 10.0.20348.2762}\n  kubernetes: '1.36'\n  proxy: {mode: kernelspace, flags: [\"--network-name=cbr0\"" + tt.proxy + "]}\n  hns:\n" + tt.acls
		tr := traced(t, nodesLab(t, "l2bridge-flannel-host-gw", nodes), "pod/client -> "+tt.to)
		if got := string(tr.Verdict) + " " + string(tr.Reason); got != tt.want {
			t.Errorf("%s: %s, want %s (%s)", tt.name, got, tt.want, tr.Summary)
		}
		if asks := len(tr.Open) == 1 && tr.Open[0].Param == labfile.ParamLayerOrder &&
			strings.Contains(tr.Summary, "ACLs of a container see"); asks != (tr.Verdict == trace.Varies) {
			t.Errorf("%s: open %+v (%s)", tt.name, tr.Open, tr.Summary)
		}
	}
}
