package cli

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// terminal reports whether a person looks at the file.
func terminal(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull && !sameAsNull(i)
}

func sameAsNull(i os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(i, null)
}

// colour reports whether standard output takes colours (https://no-color.org).
func (a *app) colour() bool {
	return a.outTerm && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// maxWidth is more than any terminal has: COLUMNS may say anything.
const maxWidth = 1000

// width is that of the terminal, 0 when it is not known.
func (a *app) width() int {
	n, _ := strconv.Atoi(a.getenv("COLUMNS"))
	return min(max(n, 0), maxWidth)
}

// output adds -o with the forms that a command can print, the default first.
func output(cmd *cobra.Command, forms ...string) *string {
	v := cmd.Flags().StringP("output", "o", forms[0], "what to print: "+strings.Join(forms, ", "))
	oneOf(cmd, "output", "-o", forms...)
	return v
}

// oneOf lets a flag be empty or one of a few values; said is how it is named in an
// error.
func oneOf(cmd *cobra.Command, flag, said string, values ...string) {
	fixed(cmd, flag, values...)
	pre := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		f := cmd.Flags().Lookup(flag)
		if v := f.Value.String(); v != f.DefValue && !slices.Contains(values, v) {
			return usagef("%s %s: write one of %s", said, v, strings.Join(values, ", "))
		}
		if pre != nil {
			return pre(cmd, args)
		}
		return nil
	}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
