package reach

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/sim/trace"
)

// matrix has two senders: one reaches the other on its own node only, and a name that is
// not safe to print.
func matrix() *Matrix {
	class := func(id string, members ...string) Class {
		return Class{ID: id, Kind: Pod, Title: id, Members: members}
	}
	cell := func(from, to, where string, v trace.Verdict, r trace.Reason, policy string) Cell {
		c := Cell{From: from, To: to, Where: where, Protocol: "tcp", Port: 80, Pairs: 2, Verdict: v, Reason: r,
			Example: Example{Command: "winlab trace <x>"}}
		if policy != "" {
			c.Decides = &Step{Place: "win1", Text: "blocked", From: policy}
		}
		return c
	}
	return &Matrix{Lab: trace.Lab{Name: "l<b>\x1b[31m"}, Pairs: 6, Traced: 3,
		Classes: []Class{class("pod/a", "pod/default/a-0", "pod/default/a-1"), class("pod/b", "pod/default/b")},
		Cells: []Cell{
			cell("pod/a", "pod/b", SameNode, trace.Delivered, trace.OK, ""),
			cell("pod/a", "pod/b", OtherNode, trace.Dropped, trace.ACLBlock, "NetworkPolicy np"),
			cell("pod/b", "pod/b", Itself, trace.Dropped, trace.ACLBlock, "NetworkPolicy np"),
		}}
}

func TestRows(t *testing.T) {
	rows := matrix().Rows()
	if len(rows) != 1 || len(rows[0].Endings) != 2 {
		t.Fatalf("%+v", rows)
	}
	yes, no := rows[0].Endings[0], rows[0].Endings[1]
	if got := strings.Join(yes.Senders, "|"); yes.Verdict != trace.Delivered || got != "pod/a [same node]" || yes.Pairs != 2 {
		t.Errorf("delivered from %s, %d", got, yes.Pairs)
	}
	// Where both ends are is said of the sender for whom it matters, and of no other.
	if got := strings.Join(no.Senders, "|"); no.Why != "NetworkPolicy np" || got != "pod/a [other node]|pod/b" || no.Pairs != 4 {
		t.Errorf("dropped from %s by %s, %d", got, no.Why, no.Pairs)
	}
}

func TestForms(t *testing.T) {
	var text, page strings.Builder
	if err := WriteText(&text, matrix(), 0); err != nil {
		t.Fatal(err)
	}
	if err := WriteHTML(&page, matrix()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pod/a  ", "a-0, a-1", "to pod/b tcp/80", "dropped acl-block", "pod/a [other node], pod/b",
		"NetworkPolicy np", "6 flows between 2 classes"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	for _, want := range []string{`<td class="open" title="same node: delivered; other node: dropped acl-block">yes no</td>`,
		`<td class="bad" title="itself: dropped acl-block">no</td>`, "<code>winlab trace &lt;x&gt;</code>", "l&lt;b&gt;"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s:\n%s", want, page.String())
		}
	}
	for _, s := range []string{text.String(), page.String()} {
		if strings.Contains(s, "\x1b") {
			t.Error("an escape sequence of a name is printed")
		}
	}
}

func TestKinds(t *testing.T) {
	o := func(v trace.Verdict, r trace.Reason) Outcome { return Outcome{Verdict: v, Reason: r} }
	for _, x := range []struct {
		a, b Outcome
		kind diff.Kind
		says string
	}{
		{o(trace.Delivered, trace.OK), o(trace.Delivered, trace.OK), "", ""},
		{o(trace.Delivered, trace.OK), o(trace.Dropped, trace.ACLBlock), diff.Stopped, "no longer delivered"},
		{o(trace.Delivered, trace.OK), o(trace.Varies, trace.DecidedByQuestion), diff.Stopped, "no longer delivered in every case"},
		{o(trace.Delivered, trace.OK), o(trace.Varies, trace.ACLBlock), diff.Stopped, "no longer delivered"},
		{o(trace.Delivered, trace.OK), o(trace.Unknown, trace.ModelHole), diff.Stopped, "no longer known to be delivered"},
		{o(trace.Varies, trace.SplitVerdict), o(trace.Delivered, trace.OK), diff.Works, "delivered in every case now"},
		{o(trace.Unknown, trace.ModelHole), o(trace.Delivered, trace.OK), diff.Works, "known to be delivered now"},
		{o(trace.Dropped, trace.ACLBlock), o(trace.NoReply, trace.NoWayBack), diff.Verdict, "another verdict"},
		{Outcome{Verdict: trace.Delivered, SeenAs: "x"}, Outcome{Verdict: trace.Delivered, SeenAs: "y"}, SeenAs, ""},
	} {
		g := Group{Kind: KindOf(x.a, x.b), A: x.a, B: x.b}
		if g.Kind != x.kind || x.says != "" && g.says() != x.says {
			t.Errorf("%s > %s is %s (%s), want %s (%s)", x.a.head(), x.b.head(), g.Kind, g.says(), x.kind, x.says)
		}
	}
}
