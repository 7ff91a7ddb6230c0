package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims/verify"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/reports/html"
	"github.com/winlab-dev/winlab/reports/junit"
	"github.com/winlab-dev/winlab/reports/result"
)

// difference is a check or a flow with an unexpected outcome.
type difference struct {
	// What is the claim and setting, or the lab and flow.
	What    string `json:"what"`
	Check   string `json:"check"`
	Expect  string `json:"expect"`
	Got     string `json:"got"`
	Reason  string `json:"reason,omitempty"`
	Summary string `json:"summary,omitempty"`
	Command string `json:"command,omitempty"`
	// Says is what another source says, where that explains the difference.
	Says string `json:"says,omitempty"`
}

// runSummary is the JSON form of what run prints.
type runSummary struct {
	result.Summary
	// Differences are those that make the run not as expected. Explained are the others:
	// the check came out as another source says, and the ledger tells so.
	Differences []difference `json:"differences"`
	ExplainedBy []difference `json:"explainedDifferences,omitempty"`
	// NotChecked are the checks that nothing reached, with why.
	NotChecked []notChecked `json:"notChecked,omitempty"`
	// FlowResults are the labs' own flows.
	FlowResults []flowLine `json:"flowResults,omitempty"`
	// NotModelled is what the labs say and the simulation does not follow.
	NotModelled []result.Notice `json:"notModelled,omitempty"`
	Report      string          `json:"report"`
	Results     string          `json:"results"`
	JUnit       string          `json:"junit"`
}

// notChecked is a check that no packet reached.
type notChecked struct {
	// What is the claim and setting.
	What    string `json:"what"`
	Check   string `json:"check"`
	Why     string `json:"why"`
	Command string `json:"command,omitempty"`
}

// flowLine is one flow of a lab with its outcome.
type flowLine struct {
	Lab     string `json:"lab"`
	Variant string `json:"variant,omitempty"`
	Setting string `json:"setting,omitempty"`
	Step    string `json:"step,omitempty"`
	Name    string `json:"name"`
	What    string `json:"what"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	Expect  string `json:"expect,omitempty"`
	Pass    bool   `json:"pass"`
	Summary string `json:"summary,omitempty"`
	Command string `json:"command,omitempty"`
}

func flowLines(doc *result.Document) []flowLine {
	var all []flowLine
	for _, f := range doc.Flows {
		all = append(all, flowLine{f.Lab, f.Variant, f.Setting, f.Step, f.Name, f.What, f.Got, f.Reason, f.Expect, f.Pass, f.Summary, f.Command})
	}
	return all
}

// printFlows prints the flows as a table: of each where it belongs, how it ended and
// what was expected.
func printFlows(w io.Writer, lines []flowLine) error {
	several := slices.ContainsFunc(lines, func(l flowLine) bool { return l.Lab != lines[0].Lab })
	columns := []struct {
		head string
		text func(flowLine) string
	}{
		{"lab", func(l flowLine) string { return l.Lab }},
		{"variant", func(l flowLine) string { return strings.TrimSpace(l.Variant + " " + l.Setting) }},
		{"step", func(l flowLine) string { return l.Step }},
		{"flow", func(l flowLine) string { return l.Name }},
		{"verdict", func(l flowLine) string { return strings.TrimSuffix(l.Verdict+" "+l.Reason, " ok") }},
		{"", func(l flowLine) string {
			switch {
			case !l.Pass && l.Expect != "":
				return "not as expected: " + l.Expect
			case !l.Pass:
				return "not as expected"
			case l.Expect == "":
				return ""
			}
			return "as expected"
		}},
	}
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var heads []string
	shown := columns[:0]
	for i, c := range columns {
		if i == 0 && !several || !slices.ContainsFunc(lines, func(l flowLine) bool { return c.text(l) != "" }) {
			continue
		}
		shown = append(shown, c)
		heads = append(heads, c.head)
	}
	fmt.Fprintln(t, strings.TrimRight(strings.Join(heads, "\t"), "\t"))
	for _, l := range lines {
		var cells []string
		for _, c := range shown {
			cells = append(cells, clean.Line(c.text(l)))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) runCmd() *cobra.Command {
	var dir, kind, baseline string
	var live, strict bool
	cmd := &cobra.Command{
		Use:   "run [LAB | DIR]...",
		Short: "Simulate labs, check every claim and write the report",
		Long: `Simulate labs in all their versions, check every claim that applies and every flow
whose outcome the labs state, and write the report: index.html, results.json with
traces.zip (winlab diff reads them) and junit.xml. Without an argument, all labs in fixtures/ are run. With the labs of
the documents' designs, claims that need no lab are checked too: rules on manifests and
node configuration, placements, resources, folders taken from nodes.

With --components both, every lab is run a second time wherever its plugin or its
kube-proxy is available as a Windows program: the programs themselves attach the pods
and program the Services, under Wine, and their results are shown beside the model's.
This needs Wine, mingw and Go, and some minutes to build the programs the first time
(make wine windows-binaries).

With --live, every flow is made with real sockets as well: each pod, node and host is a
network namespace with the simulated network behind it (winlab up), and what its
program sees must be what the trace says: whether an answer comes, who answers, and
which source the server saw. It needs Linux with user namespaces.

With --baseline, what has changed since an earlier run is printed at the end, as winlab
diff prints it, and the exit code is 1 when something has; the run itself may be as bad as
the earlier one was.

For labs that are named themselves, not only by their folder, every flow is printed with
its verdict, by variant and by step.

The exit code is 1 when a check differs from what the documents say, a flow from what
its lab expects, real components from their models, or a live flow from its trace. A
difference that the ledger already attributes to another source is counted and listed; it
fails a run only with --strict. What the model does not know is shown and does not fail a run.`,
		Example: `  winlab run
  winlab run fixtures/labs/overlay-win-overlay.yaml -d /tmp/report
  winlab run fixtures/labs -o json
  winlab run fixtures/labs/l2bridge-flannel-host-gw.yaml --components both
  winlab run fixtures/incidents --live
  winlab run --baseline main/results.json`,
		ValidArgsFunction: files(true, labExts),
	}
	out := output(cmd, "text", "json")
	cmd.Flags().StringVarP(&dir, "dir", "d", filepath.Join("out", "report"), "the `folder` to write the report to")
	cmd.Flags().StringVar(&kind, "components", "",
		"what attaches pods and programs Services on Windows nodes: `model|real|both` (default: what each lab says)")
	oneOf(cmd, "components", "--components", verify.ComponentKinds...)
	cmd.Flags().BoolVar(&live, "live", false, "make every flow with real sockets as well")
	cmd.Flags().StringVar(&baseline, "baseline", "", "an earlier run to compare with: its `folder`, or its results.json")
	allowEmpty := allowEmptyFlag(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "also exit with 1 for differences that another source explains")
	if err := cmd.MarkFlagDirname("dir"); err != nil {
		panic(err)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		paths := args
		if len(paths) == 0 {
			if i, err := os.Stat("fixtures"); err != nil || !i.IsDir() {
				return usagef("there is no folder fixtures here; name labs or folders with labs, or run winlab in its repository")
			}
			paths = []string{"fixtures"}
		}
		var before *result.Document
		if baseline != "" {
			var err error
			if before, err = result.Load(baseline); err != nil {
				return err
			}
		}
		// Before the work: a folder that cannot be written to is found now.
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := outfile.Check(filepath.Join(dir, result.File)); err != nil {
			return usagef("-d %s: %w", dir, err)
		}
		p := newProgress(a.err, a.errTerm)
		typed := append([]string{a.name, "run"}, args...)
		if kind != "" {
			typed = append(typed, "--components", kind)
		}
		if live {
			typed = append(typed, "--live")
		}
		if strict {
			typed = append(typed, "--strict")
		}
		doc, err := verify.Run(cmd.Context(), verify.Options{Paths: paths, Components: kind, Live: live, Nodes: nodesOf(paths), Progress: p.event,
			Tool: currentVersion().String(), Command: strings.Join(typed, " "), Date: began()})
		p.end()
		if err != nil {
			return err
		}
		var since *diff.Report
		if before != nil {
			if since, err = diff.Compare(before, doc, diff.Options{NameA: baseline, NameB: dir}); err != nil {
				return err
			}
			doc.Since = since.Since()
		}
		s, err := writeReport(dir, doc)
		if err != nil {
			return err
		}
		if *out == "json" {
			err = writeJSON(a.out, s)
		} else {
			err = printRun(a.out, s, onlyFiles(args))
		}
		if err != nil {
			return err
		}
		if !*allowEmpty && s.Cells+s.Statics+s.Flows == 0 {
			return nothingExamined("no flow and no claim of %s was checked: the labs have no flows, and no claim applies to them", strings.Join(paths, ", "))
		}
		if since != nil {
			return a.sinceBaseline(since, *out, *allowEmpty)
		}
		if !s.AsExpected || strict && s.Summary.Explained > 0 {
			return unexpected{}
		}
		return nil
	}
	return cmd
}

// began is the time of now as a run notes it. SOURCE_DATE_EPOCH, as for reproducible
// builds, is taken instead, so that two runs can give the same bytes.
func began() string { return beganAt().Format(time.RFC3339) }

// beganAt is the time as of now, or what SOURCE_DATE_EPOCH says, in UTC.
func beganAt() time.Time {
	const lastSecond = 253402300799 // of the year 9999, the last that RFC 3339 can write
	if s, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil && s >= 0 && s <= lastSecond {
		return time.Unix(s, 0).UTC()
	}
	return time.Now().UTC()
}

// sinceBaseline prints what has changed since an earlier run. The JSON form of a run is
// one document: there the changes go to standard error.
func (a *app) sinceBaseline(r *diff.Report, form string, allowEmpty bool) error {
	b := *a
	if form == "json" {
		b.out = a.err
	} else if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	return b.printDiff(r, "text", false, allowEmpty)
}

// nodesOf is the folder with folders taken from nodes, "" where there is none.
func nodesOf(paths []string) string {
	for _, p := range paths {
		dir := filepath.Join(p, "nodes")
		if i, err := os.Stat(dir); err == nil && i.IsDir() {
			return dir
		}
	}
	return ""
}

// writeReport writes the files of a run.
func writeReport(dir string, doc *result.Document) (*runSummary, error) {
	s := &runSummary{Summary: doc.Summary, FlowResults: flowLines(doc), Differences: differences(doc), ExplainedBy: explained(doc),
		NotChecked: unreached(doc), NotModelled: doc.NotModelled, Report: filepath.Join(dir, "index.html"),
		Results: filepath.Join(dir, result.File), JUnit: filepath.Join(dir, "junit.xml")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	page, err := html.Report(doc)
	if err != nil {
		return nil, fmt.Errorf("the HTML report: %w", err)
	}
	if err := result.Save(dir, doc); err != nil {
		return nil, err
	}
	for name, write := range map[string]func(io.Writer) error{
		s.Report: func(w io.Writer) error { _, err := w.Write(page); return err },
		s.JUnit:  func(w io.Writer) error { return junit.Write(w, doc) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := outfile.WriteFile(name, b.Bytes(), 0o666); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// differences lists what makes a run not as expected.
func differences(doc *result.Document) []difference {
	ds := []difference{}
	add := func(what string, k result.Check) {
		wanted, came := k.Words()
		ds = append(ds, difference{what, k.What, wanted, came, k.Reason, k.Summary, k.Command, ""})
	}
	for _, c := range doc.Cells {
		for _, pair := range c.Apart() {
			m, k := pair[0], pair[1]
			ds = append(ds, difference{c.Claim + " in " + c.Setting + ", level " + string(k.Level), k.What, m.Got + ", as at level " +
				string(m.Level), k.Got, k.Reason, k.Summary, k.Command, ""})
		}
		if c.Outcome != result.Differs && c.Outcome != result.Failed {
			continue
		}
		for _, k := range c.Checks {
			if !k.Pass && !k.Explained {
				add(c.Claim+" in "+c.Setting, k)
			}
		}
	}
	result.LiveChecks(doc, func(what string, k *result.Check) {
		if k.Live.Differs != "" {
			ds = append(ds, difference{What: what + ", live", Check: k.What, Expect: "what the trace says", Got: "something else",
				Summary: k.Live.Differs, Command: k.Command})
		}
	})
	for _, set := range doc.Settings {
		for _, o := range set.ObjectsApart {
			ds = append(ds, difference{What: "HNS objects in " + set.ID, Check: o.Node + ", " + o.Line,
				Expect: "the same with real components and models", Got: "only with " + string(o.Only)})
		}
	}
	for _, k := range doc.Statics {
		if k.Outcome() == result.Differs {
			add(k.Claim+" ("+k.Kind+", "+k.Where+")", k.Check)
		}
	}
	for _, f := range doc.Flows {
		if !f.Pass {
			what := f.Lab
			if f.Variant != "" {
				what += " " + f.Variant
			}
			if f.Step != "" {
				what += ", step " + f.Step
			}
			add(what, f.Check)
		}
	}
	return ds
}

// explained lists the differences that the other source of a dispute explains.
func explained(doc *result.Document) []difference {
	sources := map[string][]result.Source{}
	for _, c := range doc.Claims {
		sources[c.ID] = c.Sources
	}
	var ds []difference
	add := func(claim, where string, k result.Check) {
		if !k.Explained || k.Dispute == nil {
			return
		}
		wanted, came := k.Words()
		d := difference{claim + " in " + where, k.What, wanted, came, k.Reason, k.Summary, k.Command, ""}
		if n := k.Dispute.Against; n >= 1 && n <= len(sources[claim]) {
			s := sources[claim][n-1]
			d.Says = s.Doc + ": " + s.Position()
		}
		ds = append(ds, d)
	}
	for _, c := range doc.Cells {
		for _, k := range c.Checks {
			add(c.Claim, c.Setting, k)
		}
	}
	for _, k := range doc.Statics {
		add(k.Claim, k.Where, k.Check)
	}
	return ds
}

// unreached lists the checks that no packet reached.
func unreached(doc *result.Document) []notChecked {
	var all []notChecked
	for _, c := range doc.Cells {
		for _, k := range c.Checks {
			if k.NotChecked != "" {
				all = append(all, notChecked{c.Claim + " in " + c.Setting, k.What, k.NotChecked, k.Command})
			}
		}
	}
	return all
}

// onlyFiles reports whether labs were named, and no folders.
func onlyFiles(args []string) bool {
	return len(args) > 0 && !slices.ContainsFunc(args, func(p string) bool {
		i, err := os.Stat(p)
		return err != nil || i.IsDir()
	})
}

// printRun prints what a run found; with flows every flow, where labs were named.
func printRun(w io.Writer, s *runSummary, flows bool) error {
	if flows && len(s.FlowResults) > 0 {
		if err := printFlows(w, s.FlowResults); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d claims in %d cells, %d checks without a lab, %d flows of labs\n", s.Claims, s.Cells, s.Statics, s.Flows)
	if err := printCounts(w, s); err != nil {
		return err
	}
	printDifferences(w, s)
	printExplained(w, s)
	printNotChecked(w, s)
	for _, n := range s.NotModelled {
		fmt.Fprintf(w, "not modelled: %s (%s)", n.What, strings.TrimSpace(n.Lab+" "+n.Variant))
		if at := n.Place(); at != "" {
			fmt.Fprintf(w, "  %s", at)
		}
		fmt.Fprintf(w, "\n    %s\n", n.Why)
	}
	end := "as expected"
	switch {
	case !s.AsExpected:
		end = "not as expected"
	case s.Flows > 0 && s.FlowsOpen == s.Flows && s.Cells+s.Statics == 0:
		end = "nothing was expected"
	}
	_, err := fmt.Fprintf(w, "%s; the report is in %s\n", end, s.Report)
	return err
}

// printCounts prints how many came out how.
func printCounts(w io.Writer, s *runSummary) error {
	words := map[string]string{result.Differs: "differ from the documents", result.Failed: "could not be checked",
		result.Disputed: "differ from one source, another one agrees",
		result.Unknown:  "unknown to the model", result.NotChecked: "not checked, no packet reached what the claim is about",
		result.Own: "the model's own, documents are silent", result.Agrees: "as documented"}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, o := range result.Outcomes {
		if n := s.Outcomes[o]; n > 0 || o == result.Differs {
			fmt.Fprintf(t, "%d\t %s\t\n", n, words[o])
		}
	}
	if s.Apart > 0 {
		fmt.Fprintf(t, "%d\t different with real components and with their models\t\n", s.Apart)
	}
	if s.ObjectsApart > 0 {
		fmt.Fprintf(t, "%d\t fields of HNS objects different with real components\t\n", s.ObjectsApart)
	}
	if s.Statics > 0 {
		fmt.Fprintf(t, "%d\t checks without a lab with an unexpected outcome\t\n", s.StaticsFailed)
	}
	if s.FlowsOpen > 0 {
		fmt.Fprintf(t, "%d\t flows without an expectation\t\n", s.FlowsOpen)
	}
	if s.Flows > 0 {
		fmt.Fprintf(t, "%d\t flows with an unexpected outcome\t\n", s.FlowsFailed)
	}
	if l := s.Live; l != nil {
		fmt.Fprintf(t, "%d\t flows made with real sockets, too\t\n", l.Made)
		fmt.Fprintf(t, "%d\t of them not as in their traces\t\n", l.Apart)
		for _, why := range slices.Sorted(maps.Keys(l.NotMade)) {
			fmt.Fprintf(t, "%d\t flows not made with real sockets: %s\t\n", l.NotMade[why], why)
		}
	}
	return t.Flush()
}

// printExplained prints the differences that another source explains, those of a claim
// with one cause on one line, with the command of the first.
func printExplained(w io.Writer, s *runSummary) {
	type row struct {
		first difference
		n     int
	}
	var rows []row
	at := map[string]int{}
	for _, d := range s.ExplainedBy {
		claim, _, _ := strings.Cut(d.What, " in ")
		key := strings.Join([]string{claim, d.Check, d.Expect, d.Got, d.Says}, "\n")
		if i, ok := at[key]; ok {
			rows[i].n++
			continue
		}
		at[key] = len(rows)
		rows = append(rows, row{d, 1})
	}
	for _, r := range rows {
		fmt.Fprintf(w, "difference that another source explains: %s", r.first.What)
		if r.n > 1 {
			fmt.Fprintf(w, " and %d more", r.n-1)
		}
		fmt.Fprintf(w, ": %s: expected %s, got %s\n    %s\n", r.first.Check, r.first.Expect, r.first.Got, r.first.Says)
		if r.first.Command != "" {
			fmt.Fprintf(w, "    %s\n", r.first.Command)
		}
	}
}

// printNotChecked prints the checks that no packet reached, those of a claim on one line with
// the reason of the first.
func printNotChecked(w io.Writer, s *runSummary) {
	type row struct {
		first notChecked
		n     int
	}
	var rows []*row
	at := map[string]*row{}
	for _, c := range s.NotChecked {
		claim, _, _ := strings.Cut(c.What, " in ")
		key := claim + "\n" + c.Check
		if at[key] == nil {
			at[key] = &row{first: c}
			rows = append(rows, at[key])
		}
		at[key].n++
	}
	for _, r := range rows {
		fmt.Fprintf(w, "not checked: %s", r.first.What)
		if r.n > 1 {
			fmt.Fprintf(w, " and %d more", r.n-1)
		}
		fmt.Fprintf(w, ": %s\n    %s\n", r.first.Check, r.first.Why)
	}
}

// printDifferences prints what is not as expected, with the command that shows it.
func printDifferences(w io.Writer, s *runSummary) {
	for _, d := range s.Differences {
		fmt.Fprintf(w, "%s: %s: expected %s, got %s", d.What, d.Check, d.Expect, d.Got)
		if d.Reason != "" {
			fmt.Fprintf(w, " (%s)", d.Reason)
		}
		fmt.Fprintln(w)
		if (d.Got == "error" || strings.HasSuffix(d.What, ", live")) && d.Summary != "" {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(d.Summary, "\n", "\n    "))
		}
		if d.Command != "" {
			fmt.Fprintf(w, "    %s\n", d.Command)
		}
	}
}
