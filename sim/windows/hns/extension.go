package hns

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// SwitchExtension is an extension of the virtual switch of a network, as Get-HnsNetwork
// shows it.
type SwitchExtension struct {
	ID        string `json:"Id,omitempty"`
	IsEnabled bool   `json:"IsEnabled"`
	Name      string `json:"Name,omitempty"`
}

// switchExtensions is the field of HNS v1. What a listing has cut off is not shown; the rest
// of the network counts without it.
type switchExtensions []SwitchExtension

// UnmarshalJSON reads objects, and what PowerShell makes of them: texts, and a single object instead of a list.
func (xs *switchExtensions) UnmarshalJSON(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	all, ok := v.([]any)
	if m, is := v.(map[string]any); is && m["value"] != nil {
		all, ok = m["value"].([]any)
	}
	if !ok {
		all = []any{v}
	}
	*xs = nil
	for _, e := range all {
		m, _ := e.(map[string]any)
		if s, is := e.(string); is {
			m = map[string]any{}
			for _, part := range strings.Split(strings.Trim(s, "@{} "), ";") {
				if k, v, ok := strings.Cut(part, "="); ok {
					m[strings.TrimSpace(k)] = strings.TrimSpace(v)
				}
			}
		}
		text := func(k string) string { return strings.TrimSpace(fmt.Sprint(m[k])) }
		if m["Id"] == nil || m["IsEnabled"] == nil {
			*xs = nil // whether another one is there is not shown
			return nil
		}
		x := SwitchExtension{ID: text("Id"), IsEnabled: strings.EqualFold(text("IsEnabled"), "true")}
		if m["Name"] != nil {
			x.Name = text("Name")
		}
		*xs = append(*xs, x)
	}
	return nil
}

// OpenVSwitchExtension is the id of Open vSwitch's extension
// (openvswitch/ovs datapath-windows/ovsext/Driver.c ovsExtGuid).
const OpenVSwitchExtension = "583CC151-73EC-4A6A-8B47-578297AD7623"

// ownExtensions are those that Windows comes with, by their ids: its filtering platform,
// VFP and NDIS capture, the latter two with one id on Windows Server 2019 and another on
// 2022 (hns.switch-extension).
var ownExtensions = []string{
	"E7C3B2F0-F3C5-48DF-AF2B-10FED6D72E7A",
	"E9B59CFA-2BE1-4B21-828F-B6FBDBDDC017", "F74F241B-440F-4433-BB28-00F89EAD20D8",
	"EA24CD6C-D17A-4348-9190-09F0D5BE83DD", "430BDADD-BAB0-41AB-A369-94B67FA5BE0A",
}

// Extension finds an extension of the network's switch by its id, nil where none is shown.
func (n *Network) Extension(id string) *SwitchExtension {
	i := slices.IndexFunc(n.Extensions, func(x SwitchExtension) bool { return strings.EqualFold(strings.Trim(x.ID, "{}"), id) })
	if i < 0 {
		return nil
	}
	return &n.Extensions[i]
}

// OtherExtension is an extension that is enabled on the network's switch and that Windows
// does not come with, nil where none is shown.
func (n *Network) OtherExtension() *SwitchExtension {
	for i := range n.Extensions {
		x := &n.Extensions[i]
		if x.IsEnabled && !slices.ContainsFunc(ownExtensions, func(id string) bool { return strings.EqualFold(id, strings.Trim(x.ID, "{}")) }) {
			return x
		}
	}
	return nil
}

// extended leaves open what becomes of any packet of a port whose switch has an extension
// of somebody else's enabled, and reports whether it has (hns.switch-extension).
func extended(ls *layers, networks ...*Network) bool {
	for _, n := range networks {
		x := n.OtherExtension()
		if x == nil {
			continue
		}
		for _, d := range []vfp.Direction{vfp.Out, vfp.In} {
			ls.add(layerACL, "(EXTENSION)", d, &vfp.Rule{ID: "(switch extension)", Fact: factSwitchExtension, Origin: n.Origin,
				Action: vfp.NotModelled{Action: vfp.Allow{}, Why: fmt.Sprintf(
					"the extension %s is enabled on the switch of network %s; what it does to packets is not visible in HNS", x.Name, n.Name)}})
		}
		return true
	}
	return false
}

var factSwitchExtension = evidence.New("hns.switch-extension", evidence.Code,
	"HNS v1 shows the extensions of a network's switch and which of them are enabled. An extension that forwards, such as Open vSwitch, handles packets instead of what HNS has programmed.",
	"openvswitch/ovs datapath-windows/ovsext/Driver.c", "antrea-io/antrea pkg/agent/util/net_windows.go OVSExtensionID",
	"antrea-io/antrea pkg/agent/agent_windows.go")
