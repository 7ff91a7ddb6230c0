package html

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/gopacket/pcapgo"

	"github.com/winlab-dev/winlab/conformance/claims/verify"
	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/reports/result"
)

// reportFile is the report of two designs and of all incidents, made once: real data, because
// readers ask about it.
var reportFile = sync.OnceValues(func() (string, error) {
	doc,
		err := verify.Run(context.Background(), verify.Options{Paths: []string{"../../fixtures/labs/overlay-flannel-vxlan.yaml",
		"../../fixtures/labs/l2bridge-azure-cni.yaml", "../../fixtures/incidents"}, Tool: "winlab test", Command: "winlab run"})
	if err != nil {
		return "", err
	}
	b, err := Report(doc)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "winlab-report-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "report.html")
	return file, os.WriteFile(file, b, 0o644)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if closeBrowser != nil {
		closeBrowser()
	}
	if made {
		if file, err := reportFile(); err == nil {
			_ = os.RemoveAll(filepath.Dir(file))
		}
	}
	os.Exit(code)
}

// browser is one for all tests; each has a tab.
var (
	window       sync.Once
	windowErr    error
	browser      context.Context
	closeBrowser context.CancelFunc
)

// made is set when a test has asked for the report.
var made bool

// newTab is an empty tab of the browser that all tests share: starting a browser takes a second
// and more. An exception or an error on the console fails the test. Without a browser the test
// is skipped.
func newTab(t *testing.T) context.Context {
	t.Helper()
	bin, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium on the PATH to look at the page in a browser")
	}
	window.Do(func() {
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(bin), chromedp.NoSandbox, chromedp.Flag("disable-quic", true))
		allocator, _ := chromedp.NewExecAllocator(context.Background(), opts...)
		browser, closeBrowser = chromedp.NewContext(allocator)
		windowErr = chromedp.Run(browser)
	})
	if windowErr != nil {
		t.Fatal(windowErr)
	}
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute) // only so that a hanging browser ends
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("exception: %s", e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			t.Errorf("on the console: %s", e.Type)
		case *cdplog.EventEntryAdded:
			t.Errorf("on the console: %s", e.Entry.Text)
		}
	})
	return ctx
}

// reader is a browser with the report, and counts what its reader does.
type reader struct {
	t       *testing.T
	ctx     context.Context
	actions int
}

// read opens the report at an address in a window of a width. An error on the console fails
// the test.
func read(t *testing.T, fragment string, width int64) *reader {
	t.Helper()
	return readPage(t, func() (string, error) { made = true; return reportFile() }, fragment, width)
}

// readPage is read for another page than the report.
func readPage(t *testing.T, page func() (string, error), fragment string, width int64) *reader {
	t.Helper()
	if testing.Short() {
		t.Skip("runs labs and a browser")
	}
	r := &reader{t: t, ctx: newTab(t)}
	file, err := page()
	if err != nil {
		t.Fatal(err)
	}
	r.do(emulation.SetDeviceMetricsOverride(width, 900, 1, false), chromedp.Navigate("file://"+file+fragment))
	r.settle()
	return r
}

func (r *reader) do(actions ...chromedp.Action) {
	r.t.Helper()
	if err := chromedp.Run(r.ctx, actions...); err != nil {
		r.t.Fatal(err)
	}
}

// await runs a script that may take its time.
func (r *reader) await(js string, into any) {
	r.t.Helper()
	r.do(chromedp.Evaluate(js, into, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// settle waits until the page has answered.
func (r *reader) settle() {
	r.t.Helper()
	r.await(
		`new Promise(done => { const look = () => "ready" in document.documentElement.dataset ? setTimeout(done, 80) : setTimeout(look, 20); setTimeout(look, 20); })`, nil)
}

// act is one thing that a reader does.
func (r *reader) act(actions ...chromedp.Action) {
	r.t.Helper()
	r.actions++
	r.do(actions...)
	r.settle()
}

// click presses the mouse in the middle of an element. The queries of chromedp would follow
// every change of the page's thousands of nodes.
func (r *reader) click(sel string) {
	r.t.Helper()
	var at []float64
	r.do(
		chromedp.Evaluate(
			`(e => { if (!e) return []; e.scrollIntoView({block: "center", behavior: "instant"}); const b = e.getClientRects()[0]; return [b.x + b.width / 2, b.y + b.height / 2]; })(document.querySelector(`+quote(sel)+`))`, &at))
	if len(at) != 2 {
		r.t.Fatalf("there is no %s to click", sel)
	}
	r.act(chromedp.MouseClickXY(at[0], at[1]))
}

// choose picks an option of a filter.
func (r *reader) choose(name, value string) {
	r.t.Helper()
	r.act(chromedp.Evaluate(`form.elements.`+name+`.value = `+quote(value)+`; form.elements.`+name+
		`.dispatchEvent(new Event("input", {bubbles: true}))`, nil))
}

// search types words.
func (r *reader) search(words string) {
	r.t.Helper()
	r.act(chromedp.Evaluate(`document.querySelector("#q").focus()`, nil), chromedp.KeyEvent(words))
}

// goTo follows a link within the page.
func (r *reader) goTo(fragment string) {
	r.t.Helper()
	r.act(chromedp.Evaluate(`location.hash = `+quote(fragment), nil))
}

// eval is the value of an expression, as text.
func (r *reader) eval(js string) string {
	r.t.Helper()
	var v any
	r.do(chromedp.Evaluate(js, &v))
	return fmt.Sprint(v)
}

// sees wants texts in what an element shows.
func (r *reader) sees(sel string, texts ...string) {
	r.t.Helper()
	// What is unpacked when it is opened may take its time, and what is out of sight has no
	// text yet.
	var shown string
	for range 100 {
		shown = r.eval(
			`(e => { if (!e || !e.checkVisibility()) return "not visible"; if (!e.innerText) e.scrollIntoView({block: "nearest"}); return e.innerText; })(document.querySelector(` + quote(sel) + `))`)
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(shown, s) }) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, s := range texts {
		if !strings.Contains(shown, s) {
			r.t.Errorf("%s does not show %q but %q", sel, s, shown[:min(len(shown), 600)])
		}
	}
}

// checkActions wants that the reader has needed at most three actions.
func (r *reader) checkActions() {
	r.t.Helper()
	if r.actions > 3 {
		r.t.Errorf("it took %d actions", r.actions)
	}
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// TestAnEngineerAsks: does NodePort from the node work on Server 2022 with flannel overlay in
// 1.33? Nothing was run with 1.33.
func TestAnEngineerAsks(t *testing.T) {
	r := read(t, "", 1280)
	r.search("nodeport node itself")
	r.click(`#a-list a[href*="nodeport-from-own-node"]`)
	r.choose("build", "r:2022")
	r.checkActions()
	r.sees("#h-answer", "NodePort from the node itself")
	label := r.eval(
		`[...document.querySelectorAll("#answer .seg")].map(b => b.ariaLabel).find(l => l.includes("flannel VXLAN") && l.includes("1.19–1.37"))`)
	if !strings.Contains(label, "works, contested") {
		t.Errorf("the strip says %q", label)
	}
	// The address gives the same answer to whoever gets it.
	r = read(t, "#answer=nodeport-from-own-node&k8s=1.33&build=r:2022&net=d:overlay-flannel-vxlan", 1280)
	r.sees("#answer .said", "Kubernetes 1.33 · Windows Server 2022 (20348) · flannel VXLAN", "Works", "contested", "since 1.19", "KB4571748",
		"documents", "not tried here", "real components", "cluster")
	r.choose("k8s", "1.14")
	r.sees("#answer .said", "Kubernetes 1.14", "No document names Windows Server 2022 as a node of Kubernetes 1.14")
	r.click(`#answer .crumbs a`)
	r.sees("#answers", "What works")
}

// TestAnEngineerGoesFromTheAnswerToThePackets in three actions.
func TestAnEngineerGoesFromTheAnswerToThePackets(t *testing.T) {
	r := read(t, "", 1280)
	r.search("icmp-outside-unsupported")
	r.click(`#a-list a`)
	r.sees("#answer .said", "Does not work", "the model agrees")
	r.click(`#answer .tried a`)
	r.checkActions()
	r.sees("#p-body", "no-reply", "icmp-not-translated")
}

// TestAManagerLooks: the first screen without a single action.
func TestAManagerLooks(t *testing.T) {
	r := read(t, "", 1280)
	r.sees("#answers", "What works", "Kubernetes 1.36", "work", "How sure", "by documents alone", "have no check here", "By area")
	if low := r.eval(`Math.round(document.querySelector("#a-sure").getBoundingClientRect().bottom) <= innerHeight`); low != "true" {
		t.Error("how sure it is is not on the first screen")
	}
	if red := r.eval(
		`[...document.querySelectorAll("#answers b, .tile b")].filter(b => b.textContent === "0" && b.checkVisibility() && getComputedStyle(b).color === getComputedStyle(document.querySelector(".state-tile.s-n")).color).length`); red != "0" {
		t.Errorf("%s zeros are red", red)
	}
	r.click(`.state-tile.s-n`)
	r.sees("#a-list", "does not work")
	r.checkActions()
}

// TestAWriterLooksForWhatToMend: the place, who says otherwise, what was found, and the edit.
func TestAWriterLooksForWhatToMend(t *testing.T) {
	r := read(t, "", 1280)
	r.click(`nav a[href="#wrong"]`)
	r.checkActions()
	r.sees("#wrong", "Network", "1.22-1.36", "against it", "Kubernetes on Windows common problems", "model", "delivered",
		"not tried with real programs", "say that it failed before KB4571748")
}

// TestSomebodyOnCallReadsAnIncident: broken and fixed side by side with the step at which they
// part, and the frames in a form that other programs read.
func TestSomebodyOnCallReadsAnIncident(t *testing.T) {
	r := read(t, "", 1280)
	r.click(`#incidents a[href^="#flow=overlay-remote-backends/broken"]`)
	r.sees("#p-body", "side by side")
	r.click(`#p-body details.fold summary`)
	r.checkActions()
	r.sees("#p-body .both", "broken", "fixed", "They part at step", "parts here")
	if n := r.eval(`document.querySelectorAll("#p-body .step.parted").length`); n == "0" {
		t.Error("no step is marked")
	}
	capture := r.eval(`atob(document.querySelector('#p-body a[download$=".pcapng"]').href.split(",")[1])`)
	if len(capture) < 100 || !strings.HasPrefix(capture, "\n\r\r\n") {
		t.Errorf("the capture begins with %q", capture[:min(len(capture), 20)])
	}
	b := make([]byte, 0, len(capture))
	for _, c := range capture { // the script's letters are bytes
		b = append(b, byte(c))
	}
	got, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		frame, _, err := got.ReadPacketData()
		if err == io.EOF {
			break
		}
		if err != nil || len(frame) < 42 {
			t.Fatalf("frame %d has %d bytes, %v", n, len(frame), err)
		}
		n++
	}
	if n == 0 {
		t.Error("the capture has no frame")
	}
}

// TestSearchFindsWhatPeopleType.
func TestSearchFindsWhatPeopleType(t *testing.T) {
	r := read(t, "", 1280)
	for words, want := range map[string]string{"KB4571748": "NodePort", "hostport": "ost", "ltsc2022": "2022", "Server 2022": "2022",
		"20348": "2022", "source vip": "source VIP"} {
		r.do(chromedp.Evaluate(`document.querySelector("#q").value = ""`, nil))
		r.search(words)
		r.sees("#a-list", want)
		if n := r.eval(`document.querySelectorAll("#a-list li").length`); n == "0" || n == "40" {
			t.Errorf("%q finds %s features", words, n)
		}
	}
	r.do(chromedp.Evaluate(`document.querySelector("#q").value = ""`, nil))
	r.search("xyzzy")
	r.sees("#a-none", "No feature is found")
}

// TestVersionsOfTheAddress: one that nothing was run with is answered by ranges, and one that
// no document is about is said to be.
func TestVersionsOfTheAddress(t *testing.T) {
	r := read(t, "#k8s=1.33", 1280)
	r.sees("#a-place", "Kubernetes 1.33")
	r.sees("#between", "Nothing was run with Kubernetes 1.33", "1.20 and 1.36")
	r.sees("#shown", "6 of 16 settings")
	r.goTo("#k8s=1.33.4")
	r.sees("#a-place", "Kubernetes 1.33")
	r.goTo("#k8s=1.99")
	r.sees("#no-version", "No document here is about Kubernetes 1.99", "1.37")
}

// TestKeysAlone lead from the first page to an answer and to another version.
func TestKeysAlone(t *testing.T) {
	r := read(t, "", 1280)
	r.act(chromedp.KeyEvent("/"))
	if at := r.eval(`document.activeElement.id`); at != "q" {
		t.Fatalf("after / the focus is on %q", at)
	}
	r.do(chromedp.Evaluate(`document.activeElement.value = ""`, nil)) // the driver types the slash, too
	r.act(chromedp.KeyEvent("icmp-outside-unsupported"))
	for range 30 {
		r.do(chromedp.KeyEvent(kb.Tab))
		if r.eval(`!!document.activeElement.closest("#a-list")`) == "true" {
			break
		}
	}
	r.act(chromedp.KeyEvent(kb.Enter))
	if at := r.eval(`document.activeElement.id`); at != "h-answer" {
		t.Errorf("the focus is on %q, not on the heading of the answer", at)
	}
	for range 60 {
		r.do(chromedp.KeyEvent(kb.Tab))
		if r.eval(`document.activeElement.classList.contains("seg")`) == "true" {
			break
		}
	}
	label := r.eval(`document.activeElement.ariaLabel`)
	r.act(chromedp.KeyEvent(kb.Enter))
	if at := r.eval(`document.activeElement.ariaLabel`); at != label {
		t.Errorf("the focus went from %q to %q", label, at)
	}
	if at := r.eval(`location.hash`); !strings.Contains(at, "net=d:") {
		t.Errorf("the choice is not in the address: %s", at)
	}
}

// pages are what layout and accessibility are held to.
var pages = map[string]string{
	"first": "", "search": "#q=nodeport", "answer": "#answer=nodeport-from-own-node&k8s=1.33&build=r:2022",
	"static": "#answer=readonly-rootfs",
	"cell":   "#cell=icmp-outside-unsupported/overlay-flannel-vxlan/1.20-17763.1432", "claim": "#claim=dispute-vip-from-nodes",
	"wrong": "#wrong",
}

// TestNothingGoesSideways: no page is wider than its window, and no card; tables and drawings
// scroll in boxes of their own.
func TestNothingGoesSideways(t *testing.T) {
	r := read(t, "", 390)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		r.goTo(pages[name])
		for _, width := range full.Ends([]int64{390, 820, 1280, 1920}) {
			r.act(emulation.SetDeviceMetricsOverride(width, 900, 1, false))
			if wide := r.eval(`document.documentElement.scrollWidth`); wide != fmt.Sprint(width) {
				t.Errorf("%s at %d px is %s px wide: %s", name, width, wide,
					r.eval(
						`[...document.querySelectorAll("body *")].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide,.scroll,.draw,pre,.strip-box")).slice(0, 5).map(e => e.tagName + "." + e.className).join(" ")`))
			}
		}
	}
}

// TestPrintFits: nothing is cut off on paper, and an answer has few pages.
func TestPrintFits(t *testing.T) {
	r := read(t, "", 1040)
	for _, name := range []string{"first", "answer"} {
		r.goTo(pages[name])
		r.do(emulation.SetEmulatedMedia().WithMedia("print"))
		if wide := r.eval(`document.documentElement.scrollWidth <= 1040`); wide != "true" {
			t.Errorf("%s is %s px wide on paper", name, r.eval(`document.documentElement.scrollWidth`))
		}
		var pdf []byte
		r.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			pdf, _, err = page.PrintToPDF().WithPreferCSSPageSize(true).WithPrintBackground(true).Do(ctx)
			return err
		}))
		n := strings.Count(string(pdf), "/Type /Page\n") + strings.Count(string(pdf), "/Type /Page ")
		if name == "answer" && (n == 0 || n > 4) {
			t.Errorf("the answer has %d pages", n)
		}
	}
}

// TestAccessibility: axe finds nothing in either theme. Where not everything is tried, pages
// take turns with the themes.
func TestAccessibility(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skip("needs axe-core: npm ci --prefix reports/html/testdata/axe fetches it")
	}
	type violation struct {
		ID    string `json:"id"`
		Help  string `json:"help"`
		Nodes []struct {
			Target  []any  `json:"target"`
			Summary string `json:"failureSummary"`
		} `json:"nodes"`
	}
	themes := []string{"light", "dark"}
	for i, name := range slices.Sorted(maps.Keys(pages)) {
		r := read(t, pages[name], 1280)
		// The rows of the matrix are alike: those of three areas stand for all.
		// What is not laid out is not looked at.
		r.do(chromedp.Evaluate(`document.head.append(h("style", {}, "main>section{content-visibility:visible!important}"))`, nil))
		r.do(chromedp.Evaluate(`bodies.slice(3).forEach(b => b.remove())`, nil), chromedp.Evaluate(string(axe), nil))
		for k, theme := range themes {
			if i%2 != k && !full.Run() {
				continue
			}
			r.do(chromedp.Evaluate(`document.documentElement.dataset.theme = "`+theme+`"`, nil))
			var found []violation
			r.await(`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations)`, &found)
			for _, v := range found {
				for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
					t.Errorf("%s, %s: %s (%s), %d times: %v\n%s", name, theme, v.ID, v.Help, len(v.Nodes), n.Target, n.Summary)
				}
			}
		}
	}
}

// TestHeadingsAreNotUnderTheBar: a link to a section shows its heading.
func TestHeadingsAreNotUnderTheBar(t *testing.T) {
	r := read(t, "", 390)
	for _, width := range []int64{390, 1280} {
		r.act(emulation.SetDeviceMetricsOverride(width, 900, 1, false))
		for _, id := range strings.Fields(r.eval(`[...document.querySelectorAll("nav a")].map(a => a.hash.slice(1)).join(" ")`)) {
			r.act(chromedp.Evaluate(`document.documentElement.style.scrollBehavior = "auto"; document.querySelector('nav a[href="#`+id+
				`"]').click()`, nil))
			if ok := r.eval(`(() => { const h = document.querySelector("#` + id +
				` h2").getBoundingClientRect(), bars = [...document.querySelectorAll(".top,#filters")].filter(e => getComputedStyle(e).position === "sticky").map(e => e.getBoundingClientRect().bottom); return h.top >= Math.max(0, ...bars) - 1 && h.bottom <= innerHeight || scrollY + innerHeight >= document.documentElement.scrollHeight - 2; })()`); ok != "true" {
				t.Errorf("the heading of %s is under the bar at %d px", id, width)
			}
		}
	}
}

// TestPagesAreAllTried: a page that is linked in the head has a place in these tests.
func TestPagesAreAllTried(t *testing.T) {
	r := read(t, "", 1280)
	if ids := strings.Fields(r.eval(`[...document.querySelectorAll("nav a")].map(a => a.hash.slice(1)).join(" ")`)); !slices.Contains(ids,
		"answers") || len(ids) < 8 {
		t.Errorf("the head leads to %v", ids)
	}
}

// TestPluginAuthor: somebody has changed the configuration of a plugin, and asks what broke,
// and by which rule.
func TestPluginAuthor(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "fixtures"), os.DirFS("../../fixtures")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	run := func() *result.Document {
		t.Helper()
		doc, err := verify.Run(t.Context(), verify.Options{Paths: []string{"fixtures/labs/l2bridge-flannel-host-gw.yaml"}, Tool: "winlab test",
			Command: "winlab run"})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	before := run()
	const conf = "fixtures/cni/flannel-host-gw.conf"
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	less := bytes.Replace(text, []byte(`"10.244.0.0/16", `), nil, 1)
	if bytes.Equal(less, text) {
		t.Fatal("the configuration has no exception for pods any more")
	}
	if err := os.WriteFile(conf, less, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := diff.Compare(before, run(), diff.Options{NameA: "main", NameB: "branch"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := Diff(r)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "diff.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{390, 1280} {
		reader := readPage(t, func() (string, error) { return file, nil }, "", width)
		reader.sees("#main", "changed", conf, "no longer as expected", "OutBoundNAT", "flannel-host-gw.conf:")
		reader.click("#g1 details.fold summary")
		reader.sees("#g1 .traces", "parts here")
		if wide := reader.eval("document.documentElement.scrollWidth > innerWidth"); wide != "false" {
			t.Errorf("%d px: the page is wider than the window", width)
		}
		reader.checkActions()
	}
}
