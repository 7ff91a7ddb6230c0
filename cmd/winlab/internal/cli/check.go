package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/check"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/claims/verify"
	"github.com/winlab-dev/winlab/reports/findings"
)

// settingFlags are the flags that name a setting.
type settingFlags struct{ check.Choice }

func (s *settingFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.Kubernetes, "kubernetes", "k", "",
		"the `version` of Kubernetes, several with commas, or all (default: the newest documented)")
	f.StringVarP(&s.Windows, "windows", "w", "",
		"the `release` of Windows Server or its build, such as 2019 or 10.0.17763.1432; several with commas, or all (default: the newest documented with long-term servicing)")
	f.StringVarP(&s.Network, "network", "n", "",
		"the `network`: l2bridge, l2tunnel, overlay, transparent, the name of a design, or all (default: l2bridge, or what the configuration files say)")
	f.StringVar(&s.Proxy, "proxy", "", "how Services are served: kernelspace, kernelspace-dsr, userspace, none or all (default: kernelspace)")
	f.StringVarP(&s.Runtime, "runtime", "r", "",
		"the container `runtime`: docker or containerd, with a version containerd@1.6.8, or all (default: docker up to Kubernetes 1.23, then containerd)")
	minors := slices.Clone(claims.Minors())
	slices.Reverse(minors)
	fixed(cmd, "kubernetes", append(minors, "all")...)
	var releases []string
	for _, r := range slices.Backward(claims.Releases()) {
		releases = append(releases, r.Name)
	}
	fixed(cmd, "windows", append(releases, "all")...)
	networks := slices.Clone(check.Networks)
	for _, d := range claims.Designs {
		networks = append(networks, d.Name)
	}
	fixed(cmd, "network", append(networks, "all")...)
	fixed(cmd, "proxy", append(slices.Clone(check.Proxies), "all")...)
	fixed(cmd, "runtime", "containerd", "docker", "all")
}

// failOn are the levels that make the exit code 1.
var failOn = []string{"error", "warning", "info", "never"}

func (a *app) checkCmd() *cobra.Command {
	var s settingFlags
	var chosen selectFlags
	var system string
	cmd := &cobra.Command{
		Use:   "check FILE | DIR | - ...",
		Short: "Check manifests and node configuration against the support matrix",
		Long: `Check manifests (Pods, workloads, Services, RuntimeClasses, NetworkPolicies, volumes) and
the configuration of nodes (CNI configurations, flannel's net-conf.json and subnet.env,
command lines of kubelet, kube-proxy and flanneld, nssm and sc lines) against what the
documents say about Windows nodes, without a cluster. "-" reads standard input.

Each finding gives the place, what happens on Windows in that setting, what to write
instead, and the claim behind it; "winlab claims show ID" says more about a claim.

A pod counts as a Windows pod by its spec.os.name, node selector, affinity, RuntimeClass,
Windows options or image. If none of them says which, only the missing selector is
reported; --os makes such pods Windows or Linux pods.

Findings about what breaks or behaves differently are shown; informational findings are only
counted, and shown with --profile all. To accept a finding, suppress it with the reason: by a
comment (# winlab:ignore CLAIM REASON, at the line or above it, winlab:ignore-file for the
whole file), by the annotation winlab.dev/ignore: "CLAIM: REASON" of the object, or with
--ignore CLAIM=REASON. With --baseline, only findings that an earlier run did not have count.

Exit codes: 0 nothing found at the level of --fail-on or above, 1 something found,
2 a document could not be read, or wrong usage, 130 interrupted: the output covers
only the settings that were checked until then, and says so.`,
		Example: `  winlab check fixtures/manifests/win-webserver.yaml
  winlab check --kubernetes 1.20 --windows 2019 --network overlay pod.yaml
  helm template my-chart | winlab check --os linux -
  kubectl kustomize overlays/production | winlab check --all -
  winlab check --write sarif=findings.sarif --exclude '*-linux.yaml' deploy/
  winlab check --ignore storage-no-subpath="one mount only" pod.yaml
  winlab check -o json deploy/ > baseline.json; winlab check --baseline baseline.json deploy/`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no file to check; name files or folders, or - for standard input")
			}
			if n := len(slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s != "-" })); n > 1 {
				return usagef("standard input (-) can be read once only")
			}
			return nil
		},
		ValidArgsFunction: files(true, []string{"yaml", "yml", "json", "conf", "conflist", "env", "ps1", "cmd", "bat", "txt"}),
	}
	out := output(cmd, findingForms...)
	s.add(cmd)
	chosen.add(cmd)
	f := cmd.Flags()
	f.BoolVarP(&s.All, "all", "a", false,
		"check against every documented pair of Kubernetes and Windows from 1.14 on, the first stable version (-k all has 1.5 too)")
	f.StringVar(&system, "os", "auto", "the operating system of pods that do not say which they need: auto, windows or linux")
	fixed(cmd, "os", "auto", "windows", "linux")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains([]string{"auto", "windows", "linux"}, system) {
			return usagef("--os %s: write auto, windows or linux", system)
		}
		l, err := claims.Load()
		if err != nil {
			return err
		}
		sel, err := chosen.read(cmd, l)
		if err != nil {
			return err
		}
		targets, assumed, err := s.Targets(l)
		if err != nil {
			return usageError{err}
		}
		inputs, err := check.Inputs(args, cmd.InOrStdin(), chosen.exclude...)
		if err != nil {
			return err
		}
		p := newProgress(a.err, a.errTerm)
		doc, err := check.Run(cmd.Context(), inputs, check.Options{Targets: targets, Assumed: assumed, NetworkGiven: s.Network != "",
			OS:     strings.TrimPrefix(system, "auto"),
			Ledger: l, Ignore: sel.ignore, Tool: currentVersion().String(), Command: a.command(),
			Progress: func(done, total int, what string) {
				if a.errTerm && total > 20 || total > manySettings {
					p.event(verify.Event{Done: done, Total: total, What: what})
				}
			}})
		p.end()
		if err != nil {
			return err
		}
		check.Select(doc, sel.baseline, chosen.profile)
		if err := sel.put(doc); err != nil {
			return err
		}
		if err := a.found(doc, *out, &chosen); err != nil || doc.Interrupted == "" {
			return err
		}
		return cmd.Context().Err()
	}
	return cmd
}

// manySettings is how many files or settings take so long that their progress is shown in a
// log, too.
const manySettings = 300

// command is what was typed.
func (a *app) command() string { return strings.Join(append([]string{a.name}, a.args...), " ") }

// found prints findings and chooses the exit code.
func (a *app) found(doc *findings.Document, form string, s *selectFlags) error {
	if err := writeFindings(a.out, doc, form, a.colour()); err != nil {
		return err
	}
	if doc.CarriedOver != "" {
		fmt.Fprintln(a.err, doc.CarriedOver)
	}
	if n := len(doc.Mistakes); n > 0 {
		if n == 1 {
			return unreadable{"1 mistake in the input"}
		}
		return unreadable{fmt.Sprintf("%d mistakes in the input", n)}
	}
	if fails(doc, s.fail) {
		return unexpected{}
	}
	if !*s.allowEmpty && doc.Interrupted == "" && doc.Checked() == 0 && len(doc.Findings)+len(doc.Healthy)+len(doc.Suppressed) == 0 {
		return nothingExamined("no rule looks at what is in %s", countOf(doc.Files, "file"))
	}
	return nil
}

// nothingExamined is for an input in which nothing could be examined: that is no good news.
func nothingExamined(format string, args ...any) error {
	return unreadable{"nothing was examined: " + fmt.Sprintf(format, args...) + "; --allow-empty accepts that"}
}

// allowEmptyFlag adds the flag for scripts whose input may be empty.
func allowEmptyFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("allow-empty", false, "exit with 0 when there was nothing to examine")
}

// fails reports whether there is a finding of a level, or of a graver one.
func fails(doc *findings.Document, level string) bool {
	i := slices.Index(findings.Levels, findings.Level(level)) // -1 for never
	return slices.ContainsFunc(findings.Levels[:i+1], func(l findings.Level) bool { return doc.Count(l) > 0 })
}

// unreadable is input that could not be read, after the rest was reported.
type unreadable struct{ text string }

func (e unreadable) Error() string { return e.text }
