package dump

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/utf"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// FuzzListValue reads values as the list form prints them.
func FuzzListValue(f *testing.F) {
	for _, s := range []string{"{@{A=1; B=@{C=2}}, @{A=}...}", "{a, b}", "@{}", "{}", "{@{A={1, 2}; B=3}}", "@{A", "{,}", "{@{=}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := psValue(Scalar(s, 1))
		if n == nil {
			t.Fatal("no value")
		}
	})
}

// FuzzTable cuts rows at the dashes of a heading: every character that is not
// a blank is in one cell.
func FuzzTable(f *testing.F) {
	f.Add("Name  Id", "----  --", "kubelet  12")
	f.Add("  Id Name", "  -- ----", "1234 a b c")
	f.Fuzz(func(t *testing.T, head, rule, row string) {
		if strings.ContainsAny(head+rule+row, "\n\r") || !ruleForm.MatchString(rule) || Blank(row) {
			return
		}
		got := strings.Join(cut(row, Words(rule)), "")
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(got) != squeeze(row) {
			t.Errorf("%q cut at %q loses or repeats something: %q", row, rule, got)
		}
		Tables(Lines{File: "x", First: 1, Text: []string{head, rule, row}})
	})
}

// FuzzJSON compares the places of JSON with the text.
func FuzzJSON(f *testing.F) {
	f.Add(`{"Name":"cbr0","Subnets":[{"AddressPrefix":"10.244.1.0/24"}]}`)
	f.Add("{}\n[]\n{\"a\":\n1}")
	f.Fuzz(func(t *testing.T, s string) {
		l := Split("x", s)
		trees, err := JSONTrees(l)
		if err != nil {
			return
		}
		for _, n := range trees {
			if n.Line < 1 || n.Line > len(l.Text) {
				t.Errorf("a value on line %d of %d", n.Line, len(l.Text))
			}
		}
		Parts(l)
	})
}

// FuzzGoStruct reads what Go's %+v writes: nothing may panic or hang, and the values have
// the line.
func FuzzGoStruct(f *testing.F) {
	for _, s := range []string{
		"loadBalancer=&{Id:1 HostComputeEndpoints:[a b] SourceVIP: PortMappings:[{Protocol:6 InternalPort:80}] SchemaVersion:{Major:2 Minor:0} Flags:1}",
		"[&{Id:A Name:vEthernet (Ethernet 2) Subnets:[{AddressPrefix:10.0.0.0/8 Policies:[]}] Policies:[[123 34 84 34 58 49 125]] X:<nil>}]",
		"&{", "&{A:[", "&{A:{B:", "&{A:[123 34 1000]}", "&{A:1 B", "&{&{&{",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, n := range goStructs(s, 7) {
			if n.Kind != yaml.MappingNode || n.Line != 7 {
				t.Errorf("%q: %+v", s, n)
			}
		}
	})
}

// FuzzTranscript cuts a transcript into sections: no line is lost or is in two
// sections.
func FuzzTranscript(f *testing.F) {
	f.Add("PS C:\\k> ipconfig\n\nWindows IP Configuration\nPS C:\\k> \nC:\\>ver\n")
	f.Add("PS C:\\> kubectl exec -it a -- cmd\nC:\\>ipconfig\nC:\\>exit\nPS C:\\> a\n")
	f.Fuzz(func(t *testing.T, s string) {
		l := Split("x", s)
		at := 0
		for _, sec := range Sections(l) {
			if sec.First-1 < at {
				t.Fatalf("the section at line %d begins in the one before it", sec.First)
			}
			for ; at < sec.First-1; at++ {
				if promptForm.FindString(l.Text[at]) == "" && headingForm.FindString(l.Text[at]) == "" {
					t.Fatalf("line %d is in no section: %q", at+1, l.Text[at])
				}
			}
			at = sec.First - 1 + len(sec.Text)
		}
	})
}

// FuzzRead reads any file in any form: nothing may panic or hang, every mistake
// and every fact has a place in the file, and what was read can be loaded or is
// refused with an error.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(allOfThem))
	f.Add(
		utf.Encode16(
			"PS C:\\> Get-HnsEndpoint\n\nID : B1\nIPAddress : 10.0.0.4\nVirtualNetwork : A1\nPolicies : {@{Type=OutBoundNAT; ExceptionList={a, b...}}...}\n"))
	f.Add(
		[]byte(
			"Policy for port : \n53020B6A-651A-46C8-B089-C825BEC0F1A9\n LAYER : A\n GROUP : B\n RULE :\n Friendly name : x\n Conditions:\n a : b\n NAT RANGE : 10.0.0.4 1 2\n"))
	f.Add(
		[]byte(
			"I1107 06:45:21.073167 1 hns.go:1] Result : {\"Success\":true,\"Output\":[{\"ID\":\"A\",\"Subnets\":[]}]}\nI1107 06:45:21.073167 1 x] Deleted Hns loadbalancer 0be07c06-353c-4fbf-8ebc-5531f877e68a\n"))
	f.Add([]byte(`PS C:\k> vfpctrl /port A /layer B /list-rule /format 1` + "\n" +
		`{"Rules":[{"Id":"x","Conditions":[{"ProtocolList":[6],"DestinationIPv4RangeList":[{"L":"10.0.0.1","H":"10.0.0.2"}]}]}]}` + "\n"))
	f.Add(
		[]byte(
			"I1107 06:45:21.073167 1 a] x\nI1107 06:45:21.073167 1 b] Hns loadbalancer policy resource loadBalancer=&{Id:e2a093a0-e992-4b0e-9c4e-70f125aaa323 HostComputeEndpoints:[c4ca688b-f76e-4c80-8a26-2476e7f6b001] FrontendVIPs:[10.0.0.1] PortMappings:[{Protocol:6 InternalPort:80 ExternalPort:80}]}\nPS C:\\> Get-NetIPInterface\n\nifIndex InterfaceAlias AddressFamily NlMtu(Bytes)\n------- -------------- ------------- ------------\n5 a IPv4 1500\n"))
	f.Add(
		[]byte(
			"Windows IP Configuration\n\n   Host Name . . . : w\n\nEthernet adapter a:\n\n   IPv4 Address. . . : 10.0.0.4\n   Subnet Mask . . . : 255.0.0.0\n   Default Gateway . . . : 10.0.0.1\n"))
	build := builds.MustLookup("2022")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		n, _ := ReadFile("x", data)
		text, _ := Decode(data)
		last := len(Split("x", text).Text)
		for _, m := range n.Mistakes {
			if m.File != "x" || m.Line < 0 || m.Line > last {
				t.Errorf("a mistake at %s:%d in a file of %d lines: %s", m.File, m.Line, last, m.Message)
			}
		}
		for _, r := range n.Routes {
			if r.Place.File != "x" || r.Place.Line < 1 || r.Place.Line > last {
				t.Errorf("a route at %v", r.Place)
			}
		}
		if n.HNS == nil {
			return
		}
		s := hns.NewService(build, hns.Options{Node: "n"})
		if s.Load(n.HNS) != nil {
			return
		}
		for _, form := range FormNames() {
			if _, err := Write(form, &State{HNS: s, Routes: n.Routes, Adapters: n.Adapters, Facts: n.Facts}); err != nil {
				t.Errorf("form %s: %v", form, err)
			}
		}
	})
}
