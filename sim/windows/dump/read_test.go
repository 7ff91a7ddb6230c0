package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/internal/utf"
)

const (
	aNetwork  = `{"ID":"A1","Name":"cbr0","Type":"L2Bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`
	anEnd     = `{"ID":"B1","IPAddress":"10.244.1.4","VirtualNetwork":"A1","State":3,"Namespace":{"ID":"C1"}}`
	aList     = `{"ID":"D1","References":["/endpoints/B1"],"Policies":[{"Type":"ELB","VIPs":["10.96.0.1"],"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`
	allOfThem = aNetwork + "\n" + anEnd + "\n[" + aList + "]"
)

func read(t *testing.T, name, text string) *Node {
	t.Helper()
	n, err := ReadFile(name, []byte(text))
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return n
}

// TestJSON: the same objects, as people save them.
func TestJSON(t *testing.T) {
	for name, text := range map[string]string{
		"one after the other": allOfThem,
		"on one line":         strings.ReplaceAll(allOfThem, "\n", ""),
		"UTF-16":              string(utf.Encode16(allOfThem)),
		"with a mark":         "\xef\xbb\xbf" + allOfThem,
		"replies": `{"Success":true,"Output":[` + aNetwork + `]}{"Success":true,"Output":[` + anEnd + `]} {"Output":[` + aList +
			`],"Success":true}`,
		"hnsdiag -d": "Networks:\n[" + aNetwork + "]\nEndpoints:\n[" + anEnd + "]\nLoadBalancers:\n[" + aList + "]\n",
		"keyed":      `{"Networks":[` + aNetwork + `],"Endpoints":[` + anEnd + `],"LoadBalancers":[` + aList + `]}`,
		"a transcript": "PS C:\\k> Get-HnsNetwork | ConvertTo-Json -Depth 10\n" + aNetwork +
			"\nPS C:\\k> Get-HnsEndpoint | ConvertTo-Json\n" + anEnd + "\nPS C:\\k> Get-HnsPolicyList | ConvertTo-Json\n" + aList + "\nPS C:\\k>",
		"wrapped by a console": strings.ReplaceAll(strings.ReplaceAll(allOfThem, "AddressPrefix", "Addre\nssPrefix"), "10.96.0.1", "10.9\n6.0.1"),
		"CRLF":                 strings.ReplaceAll(allOfThem, "\n", "\r\n"),
	} {
		n := read(t, name, text)
		if n.HNS == nil || len(n.HNS.Networks) != 1 || len(n.HNS.Endpoints) != 1 || len(n.HNS.LoadBalancers) != 1 {
			t.Errorf("%s: %+v", name, n.HNS)
			continue
		}
		if got := fmt.Sprint(n.HNS.Networks[0].Subnets()[0].Prefix(), n.HNS.Endpoints[0].Attached(),
			n.HNS.LoadBalancers[0].FrontendVIPs); got != "10.244.1.0/24 true [10.96.0.1]" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestMistakes: what cannot be read has its place.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"{\"ID\":\"A1\",\n \"Name\": }": "x:2:10: not JSON",
		"hello":                         "x:1:1: winlab does not recognize anything in it",
		"\x00\x01\x02\x03":              "x:1:1: winlab does not recognize anything in it",
		"[\n {\"Type\":\"NAT\",\"ID\":\"A\",\n  \"Name\":7}]":                                     "x:3:10: network: field Name is a JSON number",
		"Networks:\nName             ID\nnat              B5083512-BE1D-4326-B58F-56CA5154E8D5\n": "x:3:1: 1 objects, the first of them network B5083512-BE1D-4326-B58F-56CA5154E8D5, are shown without their fields; collect it again with: hnsdiag list all -d",
	} {
		_, err := ReadFile("x", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestDepth: what ConvertTo-Json cut off at its depth is read where it can be,
// and named where it cannot.
func TestDepth(t *testing.T) {
	n := read(t, "x",
		`{"ID":"B1","IPAddress":"10.244.1.4","VirtualNetwork":"A1","State":3,"Policies":[{"Type":"OutBoundNAT","ExceptionList":"10.244.0.0/16 10.96.0.0/12"},"@{Type=ROUTE; DestinationPrefix=10.96.0.0/12; NeedEncap=True}"]}`)
	e := n.HNS.Endpoints[0]
	if len(e.Policies) != 2 || !strings.Contains(string(e.Policies[0].JSON()), `["10.244.0.0/16","10.96.0.0/12"]`) ||
		!strings.Contains(string(e.Policies[1].JSON()), `"NeedEncap":true`) {
		t.Errorf("%s %s", e.Policies[0].JSON(), e.Policies[1].JSON())
	}
	n = read(t, "x",
		`{"ID":"B1","IPAddress":"10.244.1.4","VirtualNetwork":"A1","State":3,"Policies":["@{Type=OutBoundNAT; ExceptionList=System.Object[]}"]}`)
	if got := n.HNS.Endpoints[0].Policies[0].NotShown; !slices.Equal(got, []string{"Exceptions"}) {
		t.Errorf("not shown: %q", got)
	}
	if len(n.Notices) != 1 || !strings.Contains(n.Notices[0].Why, "-Depth 10") {
		t.Errorf("%+v", n.Notices)
	}
	if _,
		err := ReadFile("x",
		[]byte(
			`{"ID":"D1","References":["/endpoints/B1"],"Policies":["@{Type=ELB; VIPs=System.Object[]; Protocol=6; ExternalPort=80; InternalPort=80}"]}`)); err == nil || !strings.Contains(err.Error(), "x:1:1: policy list D1: VIPs was cut off") {
		t.Errorf("%v", err)
	}
}

// TestSamples reads what people posted; testdata/README.md says where.
func TestSamples(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) < 8 {
		t.Fatalf("%d samples", len(files))
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n, err := ReadFile(filepath.Base(f), data)
		var b strings.Builder
		if err != nil {
			fmt.Fprintf(&b, "mistake %v\n", err)
		}
		describe(&b, n)
		golden := strings.TrimSuffix(f, ".txt") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, _ := os.ReadFile(golden); string(want) != b.String() {
			t.Errorf("%s reads as\n%swant\n%srun with -update and read the difference", f, b.String(), want)
		}
	}
}

// TestWrapped: a console breaks lines of wide characters in the middle of a word.
func TestWrapped(t *testing.T) {
	data, err := os.ReadFile("testdata/calico-6996-network-list.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := ListObjects(Split("x", string(data)))
	if len(all) != 1 {
		t.Fatalf("%d objects", len(all))
	}
	x := Items(Child(all[0], "Extensions"))
	if len(x) != 3 || Str(x[1], "Id") != "E9B59CFA-2BE1-4B21-828F-B6FBDBDDC017" ||
		Str(x[1], "Name") != "Microsoft Azure VFP Switch Extension" {
		t.Errorf("%+v", x)
	}
}

// TestMerge: the same objects in several forms are one each, and what one form
// cuts off another shows.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return at
	}
	list := write("list.txt",
		"ID             : B1\nIPAddress      : 10.244.1.4\nVirtualNetwork : A1\nState          : 3\nPolicies       : {@{Type=OutBoundNAT; ExceptionList=System.Object[]}...}\n")
	if _, err := Read(list); err == nil || !strings.Contains(err.Error(), "list.txt:1:1: not all policies of endpoint B1 are shown") {
		t.Errorf("alone: %v", err)
	}
	whole := write("whole.json",
		`{"ID":"b1","HostComputeNetwork":"a1","HostComputeNamespace":"c1","IpConfigurations":[{"IpAddress":"10.244.1.4","PrefixLength":24}],"Policies":[{"Type":"OutBoundNAT","Settings":{"Exceptions":["10.0.0.0/8"]}}]}`)
	for _, order := range [][]string{{list, whole}, {whole, list}} {
		n, err := Read(order...)
		if err != nil {
			t.Errorf("%v: %v", order, err)
			continue
		}
		e := n.HNS.Endpoints[0]
		if len(n.HNS.Endpoints) != 1 || len(e.Policies) != 1 || len(e.Policies[0].NotShown) > 0 || !e.Stated || e.State != 3 ||
			e.HostComputeNamespace != "c1" {
			t.Errorf("%v: %+v", order, n.HNS.Endpoints)
		}
	}
	other := write("other.json",
		`{"ID":"B1","IPAddress":"10.244.1.4","VirtualNetwork":"A1","State":3,"Policies":[{"Type":"OutBoundNAT","ExceptionList":["10.9.0.0/16"]}]}`)
	n, err := Read(whole, other)
	if err != nil || len(n.Notices) != 1 || !strings.Contains(n.Notices[0].Why, "its policies differ from those in") {
		t.Errorf("%v %+v", err, n.Notices)
	}
}

// TestGatewayIsTheHosts: the node's own endpoint where the dump does not say in
// which compartment it is.
func TestGatewayIsTheHosts(t *testing.T) {
	pod := `{"ID":"B1","IPAddress":"10.244.1.4","GatewayAddress":"10.244.1.2","VirtualNetwork":"A1","State":3}`
	n := read(t, "x", aNetwork+pod+`{"ID":"B2","Name":"cbr0_ep","IPAddress":"10.244.1.2","VirtualNetwork":"A1","State":3}`)
	if got := n.HNS.Endpoints[1].Compartment; got != 1 || len(n.Notices) != 1 ||
		!strings.Contains(n.Notices[0].Why, "assumes the node's own") {
		t.Errorf("compartment %d, %+v", got, n.Notices)
	}
	n = read(t, "x", aNetwork+pod+
		`{"ID":"B2","Name":"cbr0_ep","IPAddress":"10.244.1.2","VirtualNetwork":"A1","State":3,"Resources":{"Allocators":[{"Tag":"Endpoint Port","CompartmendId":1}]}}`)
	if got := n.HNS.Endpoints[1].Compartment; got != 1 || len(n.Notices) != 0 {
		t.Errorf("HNS says it: compartment %d, %+v", got, n.Notices)
	}
}
