package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/site"
)

func (a *app) siteCmd() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "site RESULTS",
		Short: "Write results as web pages: one for each claim, network design and incident",
		Long: `Write the results of a run as a folder of web pages with stable addresses: one page
for each claim (claims/ID.html), each network design and each incident, a first page with
a search, and the report with all traces (report.html). Any web server
for static files can serve them; opening index.html in a browser works too.

RESULTS is the folder of winlab run, or its results.json. The output folder must
not exist, be empty, or have the site of an earlier run, which is replaced.`,
		Example: `  winlab run && winlab site out/report
  winlab site out/report -d public`,
		Args:              exactly("RESULTS"),
		ValidArgsFunction: files(true, []string{"json"}),
	}
	cmd.Flags().StringVarP(&dir, "dir", "d", filepath.Join("out", "site"), "the `folder` to write")
	if err := cmd.MarkFlagDirname("dir"); err != nil {
		panic(err)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		doc, err := result.Load(args[0])
		if err != nil {
			return err
		}
		n, err := site.Write(dir, doc)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%d files; begin with %s\n", n, filepath.Join(dir, "index.html"))
		return err
	}
	return cmd
}
