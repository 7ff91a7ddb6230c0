package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/reports/findings"
)

// Suppression says that findings of a claim are known and why they stay. In a file it is
// a comment or an annotation:
//
//	hostNetwork: true # winlab:ignore host-network-unavailable our runtime has it
//	# winlab:ignore-file requests-on-every-container the namespace has a LimitRange
//	metadata: {annotations: {winlab.dev/ignore: "storage-no-subpath: one mount only"}}
//
// A comment on a line of its own is about the next line with something else on it.
type Suppression struct {
	// Claim is the claim's id, Reason why its findings stay; never empty.
	Claim, Reason string
	// by is "comment", "annotation" or "flag", at the place where it stands.
	by, at string
	// file, and either line or subject, bound what it is about; "" and 0 mean all.
	file, subject string
	line          int
	used          bool
}

// IgnoreAnnotation is the annotation of an object, or of a pod template, that suppresses
// findings in it: "claim: reason; other-claim: reason".
const IgnoreAnnotation = "winlab.dev/ignore"

// ParseSuppression reads what a flag says, CLAIM=REASON.
func ParseSuppression(s string) (Suppression, error) {
	claim, reason, _ := strings.Cut(s, "=")
	claim, reason = strings.TrimSpace(claim), strings.TrimSpace(reason)
	if claim == "" || reason == "" {
		return Suppression{},
			fmt.Errorf("%q has no reason; write the claim and why its findings stay, for example storage-no-subpath=\"one mount only\"", s)
	}
	return Suppression{Claim: claim, Reason: reason, by: "flag", at: "--ignore " + claim}, nil
}

// ignoreComment is a comment of YAML, PowerShell, subnet.env or a batch file.
var ignoreComment = lazyregexp.New(`(?i)(?:^|\s)(?:#|//|REM\s|::)\s*winlab:ignore(-file)?(?:[ \t]+(\S*)[ \t]*(.*))?$`)

// inComments finds the suppressions in the comments of a text that begins at a line of a file.
func inComments(file string, first int, text []byte) (found []*Suppression, mistakes strict.Mistakes) {
	if !bytes.Contains(bytes.ToLower(text), []byte("winlab:ignore")) {
		return nil, nil
	}
	lines := strings.Split(string(text), "\n")
	for i, l := range lines {
		m := ignoreComment.FindStringSubmatchIndex(strings.TrimRight(l, "\r"))
		if m == nil {
			continue
		}
		part := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return strings.TrimSpace(l[m[2*n]:m[2*n+1]])
		}
		wholeFile, claim, reason := part(1) != "", strings.TrimSuffix(part(2), ":"), part(3)
		if claim == "" || reason == "" {
			mistakes = append(mistakes, strict.Mistake{File: file, Line: first + i, Column: m[0] + 1,
				Message: "winlab:ignore has no reason; write the claim and why its finding stays: # winlab:ignore storage-no-subpath one mount only"})
			continue
		}
		s := &Suppression{Claim: claim, Reason: reason, by: "comment", at: fmt.Sprintf("%s:%d", file, first+i), file: file, line: first + i}
		switch {
		case wholeFile:
			s.line = 0
		case strings.TrimSpace(l[:m[0]]) == "":
			for j := i + 1; j < len(lines); j++ { // other comments may stand between
				if next := strings.TrimSpace(lines[j]); next != "" && !strings.HasPrefix(next, "#") {
					s.line = first + j
					break
				}
			}
		}
		found = append(found, s)
	}
	return found, mistakes
}

// inAnnotations finds the suppressions in the annotations of subjects. A claim may have a
// colon or an equals sign after it.
func inAnnotations(all []*subject.Subject) (found []*Suppression, mistakes strict.Mistakes) {
	seen := map[*yaml.Node]bool{}
	for _, s := range all {
		n := strict.Child(strict.Child(strict.Child(s.Root, "metadata"), "annotations"), IgnoreAnnotation)
		if n == nil || n.Kind != yaml.ScalarNode || seen[n] {
			continue
		}
		seen[n] = true
		for _, one := range strings.FieldsFunc(n.Value, func(r rune) bool { return r == ';' || r == '\n' }) {
			if strings.TrimSpace(one) == "" {
				continue
			}
			i := strings.IndexAny(one, ":=")
			if i < 0 || strings.TrimSpace(one[i+1:]) == "" {
				mistakes = append(mistakes, strict.Mistake{File: s.File, Line: n.Line, Column: n.Column,
					Message: fmt.Sprintf("%s: %q has no reason; write \"claim: why its findings stay\", several with semicolons", IgnoreAnnotation,
						strings.TrimSpace(one))})
				continue
			}
			found = append(found, &Suppression{Claim: strings.TrimSpace(one[:i]), Reason: strings.TrimSpace(one[i+1:]),
				by: "annotation", at: fmt.Sprintf("%s:%d", s.File, n.Line), file: s.File, subject: s.Name})
		}
	}
	return found, mistakes
}

// covers reports whether the suppression is about a finding. What runs in a pod, such as a
// kube-proxy, has the name of the pod's object before its own.
func (s *Suppression) covers(f *findings.Finding) bool {
	return s.Claim == f.Claim && (s.file == "" || s.file == f.File) && (s.line == 0 || s.line == f.Line) &&
		(s.subject == "" || s.subject == f.Subject || strings.HasPrefix(f.Subject, s.subject+", "))
}

// suppress moves the findings that a suppression covers to the document's suppressed ones,
// and notes suppressions that cover nothing.
func suppress(doc *findings.Document, all []*Suppression) {
	doc.Findings = slices.DeleteFunc(doc.Findings, func(f findings.Finding) bool {
		i := slices.IndexFunc(all, func(s *Suppression) bool { return s.covers(&f) })
		if i < 0 {
			return false
		}
		all[i].used = true
		doc.Suppressed = append(doc.Suppressed, findings.Suppressed{Finding: f, Reason: all[i].Reason, By: all[i].by, At: all[i].at})
		return true
	})
	for _, s := range all {
		if !s.used && !slices.ContainsFunc(doc.Suppressed, func(f findings.Suppressed) bool { return s.covers(&f.Finding) }) {
			doc.NeedlessIgnores = append(doc.NeedlessIgnores, fmt.Sprintf("%s: %s", s.at, s.Claim))
		}
	}
}

// Ignore moves the findings that suppressions of flags cover to the document's suppressed
// ones, and notes suppressions that cover nothing.
func Ignore(doc *findings.Document, list []Suppression) {
	all := make([]*Suppression, len(list))
	for i := range list {
		s := list[i]
		all[i] = &s
	}
	suppress(doc, all)
}

// Profiles are the choices of which findings are shown: those that break something or change
// what it does, or all.
var Profiles = []string{"default", "all"}

// Select takes out of a document what a baseline has, and what a profile does not show; it
// counts both.
func Select(doc *findings.Document, baseline *findings.Document, profile string) {
	if baseline != nil {
		doc.Baseline = findings.TakeOut(doc, baseline)
	}
	if profile != "default" {
		return
	}
	doc.Findings = slices.DeleteFunc(doc.Findings, func(f findings.Finding) bool {
		if f.Level != findings.Info {
			return false
		}
		if doc.NotShown == nil {
			doc.NotShown = map[string]int{}
		}
		doc.NotShown[f.Claim]++
		return true
	})
}
