package html

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
)

// open loads a page in headless Chromium from a file and returns its DOM after
// the scripts ran. An error on the console fails the test. The browser is the one of all tests,
// and the page's clock is one that jumps from timer to timer: 20 s of it pass in a moment.
func open(t *testing.T, doc []byte, fragment string) string {
	t.Helper()
	ctx := newTab(t)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, doc, 0o644); err != nil {
		t.Fatal(err)
	}
	passed := make(chan struct{}, 1)
	chromedp.ListenTarget(ctx, func(e any) {
		if _, ok := e.(*emulation.EventVirtualTimeBudgetExpired); ok {
			passed <- struct{}{}
		}
	})
	pass := func(ctx context.Context) error {
		if _, err := emulation.SetVirtualTimePolicy(emulation.VirtualTimePolicyPauseIfNetworkFetchesPending).WithBudget(20000).Do(
			ctx); err != nil {
			return err
		}
		select {
		case <-passed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var dom string
	err := chromedp.Run(ctx,
		emulation.SetDeviceMetricsOverride(1400, 900, 1, false),
		chromedp.ActionFunc(func(ctx context.Context) error {
			if _, err := emulation.SetVirtualTimePolicy(emulation.VirtualTimePolicyPause).Do(ctx); err != nil {
				return err
			}
			_, _, _, _, err := page.Navigate((&url.URL{Scheme: "file", Path: file}).String() + fragment).Do(ctx)
			return err
		}),
		chromedp.ActionFunc(func(ctx context.Context) error {
			// The clock does not wait for the parser: 20 s may be over before the page is there.
			for loaded := ""; loaded != "complete"; {
				if err := pass(ctx); err != nil {
					return err
				}
				if err := chromedp.Evaluate("document.readyState", &loaded).Do(ctx); err != nil {
					return err
				}
			}
			return pass(ctx)
		}),
		chromedp.Evaluate("document.documentElement.outerHTML", &dom))
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
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
	want(t, dom, "47 of 47 claims, 9 of 9 settings", `tabindex="0"`)
	if !regexp.MustCompile(`<div id="panel"[^>]*hidden`).MatchString(dom) {
		t.Error("the panel is open without an address")
	}
}

func TestBrowserOpensTheCellOfTheAddress(t *testing.T) {
	dom := open(t, []byte(report(t, resulttest.Sample())), "#cell=clusterip-split/overlay-win-overlay/1.20")
	want(t, dom, "differs from the documents", `role="tab"`, "10.244.2.9:80", `class="wcross"`, "ENCAP_10.244.3.0/24",
		"winlab trace fixtures/labs/overlay-win-overlay.yaml", "read in code", "RemoteSubnetRoute 10.244.3.0/24")
	if regexp.MustCompile(`<div id="panel"[^>]*hidden`).MatchString(dom) {
		t.Error("the panel is not open")
	}
}

func TestBrowserUnpacksALargeReport(t *testing.T) {
	dom := open(t, []byte(report(t, resulttest.Big(1000))), "#cell=pod-to-pod-cross-node/overlay-win-overlay-1/1.20")
	want(t, dom, "VXLAN · VNI 4096", "reply received")
}

func TestBrowserSaysWhenItCannotUnpack(t *testing.T) {
	page := report(t, resulttest.Big(1000))
	// A browser without DecompressionStream, made by asking for another name.
	page = strings.ReplaceAll(page, "DecompressionStream", "DecompressionStreaX")
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "") // it holds the script's hash
	dom := open(t, []byte(page), "#cell=pod-to-pod-cross-node/overlay-win-overlay-1/1.20")
	want(t, dom, "This browser cannot unpack the traces", "results.json")
}

func TestBrowserFiltersFromTheAddress(t *testing.T) {
	dom := open(t, []byte(report(t, resulttest.Sample())), "#outcome=differs&k8s=1.14")
	shown := len(regexp.MustCompile(`<tr data-c="\d+"( class="no")?>`).FindAllString(dom, -1))
	if shown != 4 {
		t.Errorf("%d rows are shown, want the 4 that differ in 1.14", shown)
	}
	want(t, dom, "4 of 47 claims, 2 of 9 settings")
}

func TestBrowserOddAddresses(t *testing.T) {
	page := []byte(report(t, resulttest.Small()))
	want(t, open(t, page, "#cell=gone/gone"), "Not here")
	want(t, open(t, page, "#claim=rras-forwarding"), "needs a real Windows node")
	want(t, open(t, page, "#flow=i-04-remote-backends/broken/client%20to%20Service"), "compare: fixed")
	open(t, page, "#cell=%zz&x=")
	open(t, []byte(report(t, &result.Document{})), "")
}

// TestBrowserKeys presses keys by dispatching their events, and notes what the
// page did in attributes of the root element.
func TestBrowserKeys(t *testing.T) {
	page := report(t, resulttest.Sample())
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
	page = strings.Replace(page, "</body>", `<script>(async () => {
		const key = (k, o) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true, cancelable: true, ...o}));
		const wait = () => new Promise(r => setTimeout(r, 400));
		const at = () => document.activeElement.getAttribute("aria-label") || document.activeElement.id || document.activeElement.tagName;
		const log = [];
		const note = w => log.push(w + "=" + at() + (panel.hidden ? "" : " [open " + decodeURIComponent(location.hash) + "]"));
		await wait();
		document.querySelector('#m td[tabindex="0"]').focus(); note("tab");
		key("ArrowRight"); note("right");
		key("ArrowDown"); note("down");
		key("End"); note("end");
		key("End", {ctrlKey: true}); note("ctrl-end");
		key("Home", {ctrlKey: true}); key("ArrowRight"); note("home");
		key("Enter"); await wait(); note("enter");
		key("Escape"); await wait(); note("esc");
		history.back(); await wait(); note("back");
		key("Escape"); await wait();
		key("n"); await wait(); note("n");
		key("n"); await wait(); note("nn");
		key("p"); await wait(); note("p");
		key("Escape"); await wait();
		key("/"); note("slash");
		document.activeElement.value = "nslookup"; document.activeElement.dispatchEvent(new Event("input", {bubbles: true}));
		await new Promise(then => setTimeout(then, 400)); // the tables wait for a pause in the typing
		log.push("found=" + document.querySelector("#shown").textContent + " " + location.hash);
		key("Enter");
		document.querySelector("#filters").requestSubmit(); note("submit");
		document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "?", bubbles: true}));
		log.push("help=" + document.querySelector("#help").open);
		document.title = "done";
		document.body.append(Object.assign(document.createElement("pre"), {id: "log", textContent: log.join("\n")}));
	})()</script></body>`, 1)
	dom := open(t, []byte(page), "")
	want(t, dom,
		"tab=Pod to pod, same node, Open vSwitch, layer 3 1.5: documents say it works; found ok; as documented",
		"\nright=Pod to pod, same node, flannel host-gw 1.14: documents",
		"\ndown=Pod to pod, other node, flannel host-gw 1.14: documents",
		"\nend=Pod to pod, other node, WinNAT 1.20: documents say nothing; found ok; documents are silent",
		"\nctrl-end=", "\nhome=Pod to pod, same node, flannel host-gw 1.14",
		"\nenter=p-body [open #cell=pod-to-pod-same-node/l2bridge-flannel-host-gw/1.14]",
		"\nesc=Pod to pod, same node, flannel host-gw 1.14: documents say it works; found ok; as documented\n",
		"\nback=p-body [open #cell=pod-to-pod-same-node/l2bridge-flannel-host-gw/1.14]",
		"\nn=p-body [open #cell=node-to-remote-pod/l2bridge-flannel-host-gw/1.14]",
		"\nnn=p-body [open #cell=node-to-remote-pod/l2bridge-flannel-host-gw/1.20]",
		"\np=p-body [open #cell=node-to-remote-pod/l2bridge-flannel-host-gw/1.14]",
		"\nslash=q", "\nfound=1 of 47 claims, 9 of 9 settings #q=nslookup", "\nsubmit=nslookup and the suffix list, ", "\nhelp=true")
	if t.Failed() {
		t.Log(regexp.MustCompile(`(?s)<pre id="log">.*?</pre>`).FindString(dom))
	}
}

func TestBrowserTrace(t *testing.T) {
	tr := resulttest.Sample().Traces.Get("l2bridge-flannel-host-gw/1.20 pod/client host/internet ping")
	b, err := Trace(tr)
	if err != nil {
		t.Fatal(err)
	}
	dom := open(t, b, "")
	want(t, dom, "no-reply", "icmp-not-translated", "SNAT_TCP_OUTBOUNDNAT_1_192.168.1.11", "protocol is <b>ICMP</b>",
		"fixtures/cni/flannel-host-gw.conf:14", `class="wcross"`, "frame, ")
}

func TestBrowserOpensTheSystemOfTheAddress(t *testing.T) {
	page := []byte(report(t, resulttest.Sample()))
	dom := open(t, page, "#system-overlay-flannel")
	if !regexp.MustCompile(`<details class="system" id="system-overlay-flannel"[^>]*open`).MatchString(dom) {
		t.Error("the system is not open")
	}
	if n := strings.Count(dom, `class="list sys"`); n != 1 {
		t.Errorf("%d systems have their claims listed, want the one that is open", n)
	}
	want(t, dom, "Services fail on an overlay without a source VIP", "Frames between nodes are in a tunnel", `<b class="w-mid">varies</b>`)
	want(t, open(t, page, "#system-gone"), "Systems")
}

// TestBrowserFiltersReachEveryPart: versions, areas and words narrow systems,
// static checks, contradictions and coverage, not the matrix alone.
func TestBrowserFiltersReachEveryPart(t *testing.T) {
	cases := []struct{ fragment, want string }{ // systems, static checks, contradictions
		{"#k8s=1.5", "4 of 6; 1 of 8; 3 of 5"},
		{"#k8s=&area=trouble", "2 of 6; 2 of 8; 0 of 5"},
		{"#area=&net=n:transparent", "6 of 6; 6 of 8; 4 of 5"},
		{"#net=&q=registry%20write", "1 of 6; 1 of 8; 0 of 5"},
		{"#q=hyper-v", "1 of 6; 0 of 8; 0 of 5"},
		{"#q=", "; ; "},
	}
	script := "<script>(async () => { const log = [];"
	for _, c := range cases {
		script += `location.hash = "` + c.fragment +
			`"; await new Promise(r => setTimeout(r, 300)); log.push(location.hash + " " + $$("output.fcount").slice(0, 3).map(o => o.textContent.replace(" under the filters", "")).join("; "));`
	}
	script += `document.body.append(Object.assign(document.createElement("pre"), {id: "log", textContent: log.join("\n")})); })()</script></body>`
	page := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(report(t, resulttest.Sample()), "")
	dom := open(t, []byte(strings.Replace(page, "</body>", script, 1)), "")
	got := regexp.MustCompile(`(?s)<pre id="log">(.*?)</pre>`).FindStringSubmatch(dom)
	if got == nil {
		t.Fatal("the script left no log")
	}
	for i, line := range strings.Split(strings.ReplaceAll(got[1], "&amp;", "&"), "\n") {
		if want := cases[i].fragment + " " + cases[i].want; line != want {
			t.Errorf("%q, want %q", line, want)
		}
	}
}

func TestBrowserShowsStaticChecksOfAClaim(t *testing.T) {
	page := []byte(report(t, resulttest.Sample()))
	dom := open(t, page, "#claim=readonly-rootfs")
	want(t, dom, "spec.containers[*].securityContext.readOnlyRootFilesystem", "it is accepted and has no effect",
		"readOnlyRootFilesystem: true", "≠ not found", "The example is not found in Kubernetes 1.20", "(windows)", "Part of: ", "#system-linter")
	if n := strings.Count(dom, "<dt>looks at</dt>"); n != 1 {
		t.Errorf("the rule is shown %d times", n)
	}
	want(t, open(t, page, "#claim=trouble-source-vip"), "<dt>symptom</dt>", "Start kube-proxy with --source-vip", "finds source-vip-missing",
		"2 checks without a lab")
	want(t, open(t, page, "#claim=windows-build-label"), "It is tried with", "nodeSelector: {}", "⇄ fits linux1")
	want(t, open(t, page, "#claim=csi-proxy"), "not checked here", "a cluster with storage shows it",
		"It would need a cluster with Windows nodes")
}
