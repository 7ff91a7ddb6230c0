package dump_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/dump"
)

const (
	oneNetwork  = `{"ID":"11111111-1111-1111-1111-111111111111","Name":"cbr0","Type":"L2Bridge","ManagementIP":"192.168.1.11","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`
	oneEndpoint = `{"ID":"22222222-2222-2222-2222-222222222222","Name":"a","IPAddress":"10.244.1.7","PrefixLength":24,"VirtualNetwork":"11111111-1111-1111-1111-111111111111"}`
)

// JSON that was cut off when it was collected is a mistake with its place, wherever it stands in a
// file; text that is not JSON is not a mistake.
func TestBrokenJSON(t *testing.T) {
	wrapped := oneNetwork[:60] + "\n" + oneNetwork[60:]
	for name, tt := range map[string]struct{ text, want string }{
		"whole":                  {"[" + oneNetwork + "]", ""},
		"two lists":              {"[" + oneNetwork + "]\n[" + oneEndpoint + "]\n", ""},
		"a console broke it":     {"[" + wrapped + "]", ""},
		"text behind":            {"[" + oneNetwork + "]\n\nPS C:\\> hostname\nwin1\n", ""},
		"lines of a log":         {"[12:30:01] HNS starts\n[12:30:02] {x\n", ":1:4: not JSON"},
		"cut":                    {"[" + oneNetwork + ",\n" + oneEndpoint[:40], ":2:41: the file ends in the middle of its JSON"},
		"the second list is cut": {"[" + oneNetwork + "]\n[" + oneEndpoint + ",", ":2:"},
		"damaged": {"[" + oneNetwork + ",\n" + strings.Replace(oneEndpoint, `"Name":`, `"Name";`, 1) + "]",
			":2:52: not JSON"},
		"cut behind a prompt": {"PS C:\\> Get-HnsNetwork | ConvertTo-Json\n[" + oneNetwork +
			"]\nPS C:\\> Get-HnsEndpoint | ConvertTo-Json\n[" + oneEndpoint + ",\n{\"ID\":\n", ":6:1: the JSON that begins in line 4 is cut off"},
		"cut in front of a prompt": {"PS C:\\> Get-HnsEndpoint | ConvertTo-Json\n[" + oneEndpoint +
			",\nPS C:\\> Get-HnsNetwork | ConvertTo-Json\n[" + oneNetwork + "]\n", ":2:1: the JSON that begins in line 2 is cut off"},
		"a prompt and all is there": {"PS C:\\> Get-HnsNetwork | ConvertTo-Json\n[" + oneNetwork +
			"]\nPS C:\\> Get-HnsEndpoint | ConvertTo-Json\n[" + oneEndpoint + "]\n", ""},
		"text in front of cut JSON":   {"Endpoints of win1\n\n[\n  " + oneNetwork + ",\n", ":5:1: the JSON that begins in line 3 is cut off"},
		"a table with JSON behind":    {"Name Type\n---- ----\ncbr0 L2Bridge\n\n" + oneNetwork + "\n", ""},
		"JSON within a text, whole":   {"take this {\"a\": 1} as it is\n" + oneNetwork, ""},
		"an open brace in a sentence": {"use {\n" + oneNetwork, ""},
	} {
		at := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(at, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := dump.Read(at)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
