package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what `winlab version` says.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func currentVersion() versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if b.Main.Version != "" {
		v.Version = b.Main.Version
	}
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionInfo) String() string {
	s := "winlab " + v.Version
	if v.Revision != "" {
		s += fmt.Sprintf(" (%.12s", v.Revision)
		if v.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return s
}

func (a *app) versionCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version of winlab",
		Example:           "  winlab version -o json",
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(*cobra.Command, []string) error {
		v := currentVersion()
		if *out == "json" {
			return writeJSON(a.out, v)
		}
		_, err := fmt.Fprintf(a.out, "%s, %s, %s\n", v, v.Go, v.Platform)
		return err
	}
	return cmd
}
