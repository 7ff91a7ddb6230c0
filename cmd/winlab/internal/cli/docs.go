package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Docs is the page docs/cli.md: every verb with its flags and examples, as the
// help has them.
func Docs() []byte {
	a := &app{out: io.Discard, err: io.Discard, getenv: func(string) string { return "" }}
	root := a.root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var b bytes.Buffer
	b.WriteString("<!-- Generated from the commands: make generate. Do not edit. -->\n\n# The command line\n\n")
	describe(&b, root, 0)
	return b.Bytes()
}

func describe(b *bytes.Buffer, c *cobra.Command, depth int) {
	if c.Name() == "help" || c.Hidden {
		return
	}
	c.InitDefaultHelpFlag()
	if depth > 0 {
		fmt.Fprintf(b, "%s %s\n\n", strings.Repeat("#", min(depth, 2)+1), c.CommandPath())
	}
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(prose(long))
	if c.Runnable() && depth > 0 {
		fmt.Fprintf(b, "\n    %s\n", c.UseLine())
	}
	if c.Example != "" {
		b.WriteString("\nExamples:\n\n")
		for line := range strings.Lines(c.Example) {
			b.WriteString("    " + strings.TrimSpace(line) + "\n")
		}
	}
	var flags []string
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		flags = append(flags, flagRow(f))
	})
	if len(flags) > 0 {
		b.WriteString("\n| flag | means |\n|---|---|\n" + strings.Join(flags, ""))
	}
	b.WriteString("\n")
	if depth == 0 {
		b.WriteString("| command | does |\n|---|---|\n")
		for _, s := range c.Commands() {
			if !s.Hidden && s.Name() != "help" {
				fmt.Fprintf(b, "| [%s](#%s) | %s |\n", s.CommandPath(), strings.ReplaceAll(s.CommandPath(), " ", "-"), s.Short)
			}
		}
		b.WriteString("\n")
	}
	for _, s := range c.Commands() {
		describe(b, s, depth+1)
	}
}

// prose takes a help text over: indented lines are code already, and cobra's own
// texts have tabs in front of theirs.
func prose(s string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(s)) {
		if rest, ok := strings.CutPrefix(line, "\t"); ok {
			line = "    " + rest
		}
		b.WriteString(line)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func flagRow(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "0s" && f.DefValue != "[]" {
		usage += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	return fmt.Sprintf("| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", "\\|"))
}
