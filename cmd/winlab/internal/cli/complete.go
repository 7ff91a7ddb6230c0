package cli

import (
	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// fixed completes a flag from a closed set.
func fixed(cmd *cobra.Command, flag string, values ...string) {
	complete(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	})
}

func complete(cmd *cobra.Command, flag string, f completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: any test finds it
	}
}

// files completes an argument with files of these extensions, by position; the
// last position repeats when repeat is set.
func files(repeat bool, exts ...[]string) completion {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		i := len(args)
		if i >= len(exts) {
			if !repeat {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			i = len(exts) - 1
		}
		return exts[i], cobra.ShellCompDirectiveFilterFileExt
	}
}

var labExts, captureExts = []string{"yaml", "yml"}, []string{"pcap", "pcapng"}

// fromLab completes a flag from the lab that the first argument names.
func (a *app) fromLab(cmd *cobra.Command, flag string, o *labOptions, values func(*lab.Cluster) []string) {
	complete(cmd, flag, func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		f, err := lab.Load(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		c, err := lab.Build(cmd.Context(), f, lab.Options{Variant: o.variant, Components: labfile.Model})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return values(c), cobra.ShellCompDirectiveNoFileComp
	})
}

// fromFile completes a flag from what the lab file says, without building it.
func fromFile(cmd *cobra.Command, flag string, values func(*labfile.Spec) []string) {
	complete(cmd, flag, func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		f, err := lab.Load(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return values(&f.Lab.Spec), cobra.ShellCompDirectiveNoFileComp
	})
}
