package observed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf16"
)

// folder makes a folder of texts.
func folder(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func readOneFile(name, text string) *Node { return ReadFS(folder(map[string]string{name: text})) }

func utf16le(s string) string {
	var b bytes.Buffer
	b.Write([]byte{0xff, 0xfe})
	for _, u := range utf16.Encode([]rune(s)) {
		_ = binary.Write(&b, binary.LittleEndian, u)
	}
	return b.String()
}

func utf16be(s string) string {
	var b bytes.Buffer
	b.Write([]byte{0xfe, 0xff})
	for _, u := range utf16.Encode([]rune(s)) {
		_ = binary.Write(&b, binary.BigEndian, u)
	}
	return b.String()
}

const network = `[
    {
        "ID":  "6D9E1B24-0E0C-4B57-8A39-60E2A5C7F101",
        "ManagementIP":  "192.168.1.11",
        "Name":  "cbr0",
        "Subnets":  [
                        {
                            "AddressPrefix":  "10.244.1.0/24"
                        }
                    ],
        "Type":  "L2Bridge"
    }
]
`

// TestEncodings: Windows PowerShell writes UTF-16, others a byte order mark or
// none; lines end with CRLF or LF.
func TestEncodings(t *testing.T) {
	crlf := strings.ReplaceAll(network, "\n", "\r\n")
	for name, text := range map[string]string{
		"UTF-8": network, "UTF-8 with mark": "\ufeff" + network, "CRLF": crlf, "UTF-16": utf16le(crlf), "UTF-16 big endian": utf16be(network),
	} {
		n := readOneFile("x", text)
		if len(n.Networks) != 1 || len(n.Mistakes) > 0 {
			t.Errorf("%s: networks %+v, mistakes %v", name, n.Networks, n.Mistakes)
			continue
		}
		if got := n.Networks[0]; got.Name != "cbr0" || got.Type != "l2bridge" || fmt.Sprint(got.Subnets) != "[10.244.1.0/24]" ||
			got.managementIP.String() != "192.168.1.11" {
			t.Errorf("%s: %+v", name, got)
		}
		if want := `x:5: "Name": "cbr0",`; n.Networks[0].Place.String() != want {
			t.Errorf("%s: the place is %q, not %q", name, n.Networks[0].Place, want)
		}
	}
}

// TestBadFiles: each bad file is reported, and the good one is still read.
func TestBadFiles(t *testing.T) {
	fsys := folder(map[string]string{
		"a.json":      "{\"Name\": \"cbr0\",\n \"Type\": }",
		"b.exe":       "MZ\x90\x00\x03\x00\x00\x00",
		"c.txt":       "",
		"d.json":      network,
		"e.json":      strings.Repeat("[", 20000),
		"f.etl":       strings.Repeat("\x01\x02\x03\x07", 1000),
		"g.json":      strings.Repeat("{\"a\":\n", 5000),
		"h.txt":       "just notes\n",
		"SourceVip":   `{"cniVersion": "0.2.0", "dns": {}}`,
		"nodes.yaml":  "apiVersion: v1\nkind: List\nitems:\n- kind: Node\n  metadata: {name: win1}\n  spec: {a: 1, a: 2}\n",
		"latin.txt":   "Windows-IP-Konfiguration\r\n   Hostname  . . . . : k\xf6ln\r\n",
		"sub/i.json":  network,
		"subnet.env":  "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
		"cni/cni.con": "{",
	})
	fsys["huge.log"] = &fstest.MapFile{Data: bytes.Repeat([]byte("I1118 a line of a log\n"), 10<<10)}
	fsys["huge.exe"] = &fstest.MapFile{Data: bytes.Repeat([]byte("MZ\x90\x00"), 100<<10)}
	n := ReadFS(big{fsys})
	if len(n.Networks) != 2 {
		t.Errorf("%d networks were read, not 2", len(n.Networks))
	}
	if len(n.Subjects) == 0 {
		t.Error("subnet.env was not read")
	}
	want := map[string]string{
		"a.json": "a.json:2:10: not JSON", "e.json": "e.json:1:1: not JSON", "g.json": "g.json:5001:1: the file ends in the middle of its JSON",
		"huge.log": "the file has 104857600 bytes", "SourceVip": "has neither an address nor a subnet", "nodes.yaml": "nodes.yaml:6:",
		"cni/cni.con": "not JSON",
	}
	for file, text := range want {
		found := false
		for _, m := range n.Mistakes {
			found = found || m.File == file && strings.Contains(m.String(), text)
		}
		if !found {
			t.Errorf("no mistake says %q; there are:\n%v", text, n.Mistakes)
		}
	}
	for _, m := range n.Mistakes {
		if want[m.File] == "" {
			t.Errorf("a mistake in %s, which is correct: %s", m.File, m)
		}
	}
	skipped := map[string]string{}
	for _, f := range n.Files {
		skipped[f.Name] = f.Skipped
	}
	for file, word := range map[string]string{"b.exe": "binary", "f.etl": "binary", "c.txt": "empty", "huge.log": "too large",
		"huge.exe": "binary", "h.txt": ""} {
		if skipped[file] != word {
			t.Errorf("%s is skipped as %q, not %q", file, skipped[file], word)
		}
	}
}

// big makes files called huge say that they have 100 MB; of them only the
// beginning is read.
type big struct{ fstest.MapFS }

func (b big) Open(name string) (fs.File, error) {
	f, err := b.MapFS.Open(name)
	if strings.HasPrefix(name, "huge.") && err == nil {
		return &hugeFile{File: f}, nil
	}
	return f, err
}

type hugeFile struct {
	fs.File
	read int
}

func (h *hugeFile) Stat() (fs.FileInfo, error) {
	i, err := h.File.Stat()
	return hugeInfo{i}, err
}

func (h *hugeFile) Read(p []byte) (int, error) {
	n, err := h.File.Read(p)
	if h.read += n; h.read > 128<<10 {
		panic("a file that is too large was read")
	}
	return n, err
}

type hugeInfo struct{ fs.FileInfo }

func (hugeInfo) Size() int64        { return 100 << 20 }
func (hugeInfo) ModTime() time.Time { return time.Time{} }

// TestFilesAreRecognisedByContent: names do not matter.
func TestFilesAreRecognisedByContent(t *testing.T) {
	for _, tt := range []struct{ name, text, as string }{
		{"a", network, ListNetworks},
		{"b.log",
			"Networks:\nName             ID\nnat              B5083512-BE1D-4326-B58F-56CA5154E8D5\n\nEndpoints:\nName             ID                                   Virtual Network Name\n", listEndpoints},
		{"c.csv", "SERVICE_NAME: kubelet \n        TYPE               : 10  WIN32_OWN_PROCESS  \n        STATE              : 4  RUNNING \n",
			ListServices},
		{"d", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n", listConf},
		{"e", "COMPUTERNAME=WIN1\nOS=Windows_NT\nwindir=C:\\Windows\n", ListVariables},
		{"f", "\nCurrent WinHTTP proxy settings:\n\n    Direct access (no proxy server).\n", "WinHTTP proxy"},
		{"g", "\nMicrosoft Windows [Version 10.0.17763.1432]\n", "the build of Windows"},
		{"h", `{"cniVersion":"0.2.0","ip4":{"ip":"10.244.1.3/24"},"dns":{}}`, listSourceVIP},
	} {
		n := readOneFile(tt.name, tt.text)
		if got := strings.Join(n.Files[0].As, ", "); !strings.Contains(got, tt.as) {
			t.Errorf("%s: read as %q, not as %q\n%s", tt.name, got, tt.as, tt.text)
		}
	}
}

// TestLongLog: a log is longer than any configuration, and that is not a mistake.
func TestLongLog(t *testing.T) {
	line := "I1118 07:03:40.918264    3412 kubelet.go:1917] SyncLoop (ADD, api)\n"
	for _, name := range []string{"kubelet.log", "kubelet.txt", "kubelet"} {
		n := readOneFile(name, strings.Repeat(line, (2<<20)/len(line))+
			"E1118 07:03:41.000000    3412 x.go:1] open /run/flannel/subnet.env: The system cannot find the path specified.\n")
		if len(n.Mistakes) > 0 {
			t.Errorf("%s: %v", name, n.Mistakes)
		}
		if len(n.SignsOf("subnet-env")) != 1 {
			t.Errorf("%s: the last line is not read: %+v", name, n.signs)
		}
	}
}

// TestScriptsAreNotOutput: what a script would print was not printed.
func TestScriptsAreNotOutput(t *testing.T) {
	text := "function WaitForNetwork {\n  Write-Host \"Waiting for the Network to be created\"\n}\n"
	if n := readOneFile("helper.psm1", text); len(n.signs) > 0 {
		t.Errorf("a script's text is taken for its output: %+v", n.signs)
	}
	if n := readOneFile("start.txt", text); len(n.signs) != 1 {
		t.Errorf("the message is not seen in what start.ps1 printed: %+v", n.signs)
	}
}

func TestReadSaysWhatIsNoFolder(t *testing.T) {
	if _, err := Read(t.Context(), "read_test.go"); err == nil || !strings.Contains(err.Error(), "takes a folder") {
		t.Errorf("a file: %v", err)
	}
	if _, err := Read(t.Context(), "testdata/not-there"); err == nil {
		t.Error("a folder that is not there gives no error")
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := Read(ctx, "../../../fixtures/nodes/healthy-l2bridge"); !errors.Is(err, context.Canceled) {
		t.Errorf("read %v, %v", n, err)
	}
}
