package dump

import (
	"strings"
	"testing"
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
				if promptForm.FindString(l.Text[at]) == "" {
					t.Fatalf("line %d is in no section: %q", at+1, l.Text[at])
				}
			}
			at = sec.First - 1 + len(sec.Text)
		}
	})
}
