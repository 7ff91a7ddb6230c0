package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/check"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/reports/findings"
	"io/fs"
)

// findingForms are the forms in which findings are written.
var findingForms = []string{"text", "json", "sarif", "junit"}

// writeFindings writes a document in a form.
func writeFindings(w io.Writer, doc *findings.Document, form string, colour bool) error {
	switch form {
	case "json":
		return findings.JSON(w, doc)
	case "sarif":
		return findings.SARIF(w, doc)
	case "junit":
		return findings.JUnit(w, doc)
	}
	return findings.Text(w, doc, findings.TextOptions{Color: colour})
}

// selectFlags say which findings count and where they are written.
type selectFlags struct {
	fail, profile, baseline string
	ignore, exclude, write  []string
	allowEmpty              *bool
}

func (s *selectFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.fail, "fail-on", "error", "the lowest level of a finding that sets the exit code to 1: "+strings.Join(failOn, ", "))
	f.StringVar(&s.profile, "profile", "default",
		"which findings to show: default (errors and warnings: what breaks or behaves differently) or all (info too)")
	f.StringArrayVar(&s.exclude, "exclude", nil,
		"files and folders to leave out of folders: a `pattern` such as vendor, '*-linux.yaml' or 'charts/**'; may be repeated")
	fixed(cmd, "fail-on", failOn...)
	fixed(cmd, "profile", check.Profiles...)
	s.addKnown(cmd)
}

// addKnown adds the flags about findings that are known, and where they are written.
func (s *selectFlags) addKnown(cmd *cobra.Command) {
	s.allowEmpty = allowEmptyFlag(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&s.ignore, "ignore", nil, "accept the findings of a claim, with the reason: `CLAIM=REASON`; may be repeated")
	f.StringVar(&s.baseline, "baseline", "",
		"findings of an earlier run, a `file` made with -o json: findings in it are not shown and do not fail the run")
	f.StringArrayVar(&s.write, "write", nil, "write the findings to a file, too: `FORM=FILE`, such as sarif=findings.sarif; may be repeated")
	complete(cmd, "ignore", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var all []string
		for _, id := range claimIDs() {
			id, _, _ = strings.Cut(id, "\t")
			all = append(all, id+"=")
		}
		return all, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
}

// selection is what the flags say, read before any work is done.
type selection struct {
	ignore   []check.Suppression
	baseline *findings.Document
	files    []formFile
}

type formFile struct{ form, name string }

// read checks the flags: whatever is wrong with them is found before the work.
func (s *selectFlags) read(cmd *cobra.Command, l *claims.Ledger) (*selection, error) {
	if !slices.Contains(failOn, s.fail) {
		return nil, usagef("--fail-on %s: write one of %s", s.fail, strings.Join(failOn, ", "))
	}
	if !slices.Contains(check.Profiles, s.profile) {
		return nil, usagef("--profile %s: write one of %s", s.profile, strings.Join(check.Profiles, ", "))
	}
	if s.fail == "info" && !cmd.Flags().Changed("profile") {
		s.profile = "all" // what fails is shown
	}
	if s.fail == "info" && s.profile == "default" {
		return nil, usagef("--fail-on info with --profile default: the default profile shows no finding of that level; write --profile all")
	}
	out := &selection{}
	for _, text := range s.ignore {
		one, err := check.ParseSuppression(text)
		if err != nil {
			return nil, usagef("--ignore %v", err)
		}
		if l.Claim(one.Claim) == nil {
			return nil, usagef("--ignore %s: no claim has this id%s", one.Claim, nearClaims(l, one.Claim))
		}
		out.ignore = append(out.ignore, one)
	}
	if s.baseline != "" {
		f, err := input.Open(cmd.Context(), s.baseline, input.Document)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usagef("--baseline %s: there is no such file; make one with: %s -o json ... > %s", s.baseline, cmd.CommandPath(), s.baseline)
		}
		if err != nil {
			return nil, usagef("--baseline: %w", err)
		}
		defer f.Close()
		if out.baseline, err = findings.Read(f); err != nil {
			return nil, usagef("--baseline %s: %v", s.baseline, err)
		}
	}
	var err error
	out.files, err = writable(s.write)
	return out, err
}

// writable reads FORM=FILE, and finds out whether the files can be written. None of them
// is touched: an earlier file stays until there is something to put in its place.
func writable(list []string) ([]formFile, error) {
	var out []formFile
	for _, text := range list {
		form, name, ok := strings.Cut(text, "=")
		if !ok || name == "" || !slices.Contains(findingForms, form) {
			return nil, usagef("--write %s: write FORM=FILE, with one of the forms %s, for example sarif=findings.sarif", text,
				strings.Join(findingForms, ", "))
		}
		if err := outfile.Check(name); err != nil {
			return nil, usagef("--write %s: %w", text, err)
		}
		out = append(out, formFile{form, name})
	}
	return out, nil
}

// put writes the document into the files.
func (s *selection) put(doc *findings.Document) error {
	for _, f := range s.files {
		var b strings.Builder
		if err := writeFindings(&b, doc, f.form, false); err != nil {
			return err
		}
		if err := outfile.WriteFile(f.name, []byte(b.String()), 0o666); err != nil {
			return fmt.Errorf("--write %s=%s: %w", f.form, f.name, err)
		}
	}
	return nil
}
