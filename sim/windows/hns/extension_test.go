package hns

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// TestSwitchExtensions: extensions are read in the forms that PowerShell writes; where one that
// Windows does not come with is enabled, what happens to packets is unknown at every port.
func TestSwitchExtensions(t *testing.T) {
	const own = `{"Id":"E7C3B2F0-F3C5-48DF-AF2B-10FED6D72E7A","IsEnabled":false,"Name":"WFP"},{"Id":"E9B59CFA-2BE1-4B21-828F-B6FBDBDDC017","IsEnabled":true,"Name":"VFP"}`
	ovs := func(on string) string {
		return `{"Id":"583CC151-73EC-4A6A-8B47-578297AD7623","IsEnabled":` + on + `,"Name":"Open vSwitch Extension"}`
	}
	for _, c := range []struct{ extensions, want string }{
		{"", "[] none"},
		{`,"Extensions":[]`, "[] none"},
		{`,"Extensions":[` + own + `]`, "[WFP false, VFP true] none"},
		{`,"Extensions":[` + own + "," + ovs("false") + `]`, "[WFP false, VFP true, Open vSwitch Extension false] none"},
		{`,"Extensions":[` + own + "," + ovs("true") + `]`, "[WFP false, VFP true, Open vSwitch Extension true] Open vSwitch Extension"},
		{`,"Extensions":{"value":[` + ovs("true") + `],"Count":1}`, "[Open vSwitch Extension true] Open vSwitch Extension"},
		{`,"Extensions":` + ovs(`"True"`), "[Open vSwitch Extension true] Open vSwitch Extension"},
		{`,"Extensions":["@{Id=583CC151-73EC-4A6A-8B47-578297AD7623; IsEnabled=True; Name=Open vSwitch Extension}"]`,
			"[Open vSwitch Extension true] Open vSwitch Extension"},
		{`,"Extensions":"System.Object[]"`, "[] none"},
		{`,"Extensions":[` + ovs("true") + `,"..."]`, "[] none"}, // which others are there is not shown
		{`,"Extensions":7`, "[] none"},
	} {
		d,
			err := ParseDump("d.json",
			[]byte(`{"ID":"11111111-1111-1111-1111-111111111111","Name":"n","Type":"Transparent","Subnets":[{"AddressPrefix":"10.1.0.0/24"}]`+
				c.extensions+`}`))
		if err != nil || len(d.Networks) != 1 {
			t.Errorf("%s: %v", c.extensions, err)
			continue
		}
		n := &d.Networks[0]
		var all []string
		for _, x := range n.Extensions {
			all = append(all, fmt.Sprintf("%s %v", x.Name, x.IsEnabled))
		}
		other := "none"
		if x := n.OtherExtension(); x != nil {
			other = x.Name
		}
		if got := fmt.Sprintf("[%s] %s", strings.Join(all, ", "), other); got != c.want {
			t.Errorf("%s: %s, want %s", c.extensions, got, c.want)
		}
		ls := &layers{}
		if got := extended(ls, n); got != (other != "none") {
			t.Errorf("%s: %v", c.extensions, got)
		}
		for _, l := range ls.all {
			for _, g := range l.Groups {
				for _, r := range g.Rules {
					if a, ok := r.Action.(vfp.NotModelled); !ok || !strings.Contains(a.Why,
						"Open vSwitch Extension is enabled on the switch of network n") {
						t.Errorf("%+v", r)
					}
				}
			}
		}
	}
}
