package html

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
)

// open loads a page in headless Chromium from a file and returns its DOM after
// the scripts ran. An error on the console fails the test.
func open(t *testing.T, page []byte, fragment string, flags ...string) string {
	t.Helper()
	bin, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium on the PATH to look at the page in a browser")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // only so that a hanging browser ends
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + filepath.Join(dir, "profile"), "--enable-logging=stderr", "--virtual-time-budget=20000", "--window-size=1400,900", "--dump-dom"}, flags...)
	cmd := exec.CommandContext(ctx, bin, append(args, "file://"+file+fragment)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, log.String())
	}
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("on the console: %s", line)
		}
	}
	dom := out.String()
	if !strings.Contains(dom, `data-ready=""`) {
		t.Errorf("the script did not finish")
	}
	// What is shown, without the data and the script.
	return regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(dom, "")
}

func want(t *testing.T, dom string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(dom, s) {
			t.Errorf("the page does not show %q", s)
		}
	}
}

func TestBrowserMatrix(t *testing.T) {
	doc := resulttest.Sample()
	dom := open(t, []byte(report(t, doc)), "")
	if n := strings.Count(dom, `<tr data-c="`); n != len(doc.Claims) {
		t.Errorf("%d rows, want %d", n, len(doc.Claims))
	}
	if n := len(regexp.MustCompile(`<td class="c [^"]*"`).FindAllString(dom, -1)); n != len(doc.Cells) {
		t.Errorf("%d cells, want %d", n, len(doc.Cells))
	}
	want(t, dom, "40 of 40 claims, 9 of 9 settings", `tabindex="0"`)
	if !regexp.MustCompile(`<aside id="panel"[^>]*hidden`).MatchString(dom) {
		t.Error("the panel is open without an address")
	}
}

func TestBrowserOpensTheCellOfTheAddress(t *testing.T) {
	dom := open(t, []byte(report(t, resulttest.Sample())), "#cell=clusterip-split/overlay-win-overlay/1.20")
	want(t, dom, "differs from the documents", `role="tab"`, "10.244.2.9:80", `class="wcross"`, "ENCAP_10.244.3.0/24", "winlab trace fixtures/labs/overlay-win-overlay.yaml", "read in code", "RemoteSubnetRoute 10.244.3.0/24")
	if regexp.MustCompile(`<aside id="panel"[^>]*hidden`).MatchString(dom) {
		t.Error("the panel is not open")
	}
}

func TestBrowserUnpacksALargeReport(t *testing.T) {
	dom := open(t, []byte(report(t, resulttest.Big(300))), "#cell=pod-to-pod-cross-node/overlay-win-overlay-1/1.20")
	want(t, dom, "VXLAN · VNI 4096", "reply received")
}

func TestBrowserSaysWhenItCannotUnpack(t *testing.T) {
	page := report(t, resulttest.Big(300))
	// A browser without DecompressionStream, made by asking for another name.
	page = strings.ReplaceAll(page, "DecompressionStream", "DecompressionStreaX")
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "") // it holds the script's hash
	dom := open(t, []byte(page), "#cell=pod-to-pod-cross-node/overlay-win-overlay-1/1.20")
	want(t, dom, "This browser cannot unpack the traces", "results.json")
}

func TestBrowserFiltersFromTheAddress(t *testing.T) {
	dom := open(t, []byte(report(t, resulttest.Sample())), "#outcome=differs&k8s=1.14")
	shown := len(regexp.MustCompile(`<tr data-c="\d+" data-find="[^"]*">`).FindAllString(dom, -1))
	if shown != 4 {
		t.Errorf("%d rows are shown, want the 4 that differ in 1.14", shown)
	}
	want(t, dom, "4 of 40 claims, 2 of 9 settings")
}

func TestBrowserOddAddresses(t *testing.T) {
	page := []byte(report(t, resulttest.Small()))
	want(t, open(t, page, "#cell=gone/gone"), "Not here")
	want(t, open(t, page, "#claim=rras-forwarding"), "needs a real Windows node")
	want(t, open(t, page, "#flow=0"), "compare: fixed")
	open(t, page, "#cell=%zz&x=")
	open(t, []byte(report(t, &result.Document{})), "")
}

func TestBrowserTrace(t *testing.T) {
	tr := resulttest.Sample().Traces["l2bridge-flannel-host-gw/1.20 pod/client host/internet ping"]
	b, err := Trace(tr)
	if err != nil {
		t.Fatal(err)
	}
	dom := open(t, b, "")
	want(t, dom, "no-reply", "icmp-not-translated", "SNAT_TCP_OUTBOUNDNAT_1_192.168.1.11", "protocol is <b>ICMP</b>", "fixtures/cni/flannel-host-gw.conf:14", `class="wcross"`, "frame, ")
}
