package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// find lists the lab files of paths, sorted, each once. Files in folders named
// "common" are parts of other labs, and those in folders named "held-out" expect what
// a source says even where the model is known to miss it: both are run only
// when they are named.
func find(paths []string) ([]string, error) {
	var files []string
	var errs []error
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: there is no such file or folder", p))
			continue
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		err = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "common" || d.Name() == "held-out" && path != p):
				return filepath.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".yaml":
				return nil
			}
			if isLab(path) {
				files = append(files, path)
			}
			return nil
		})
		errs = append(errs, err)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no lab in %s; a lab is a .yaml file with kind: Lab", strings.Join(paths, ", "))
	}
	return files, nil
}

// isLab looks for the head of a lab without reading the whole file as one.
func isLab(path string) bool {
	data, err := input.ReadFile(path, input.Text)
	return err == nil && strings.Contains(string(data), "apiVersion: "+labfile.APIVersion) &&
		strings.Contains(string(data), "kind: "+labfile.Kind)
}

// plan reads the labs and lists what is to be run.
func plan(files []string, kind string) ([]*job, error) {
	var jobs []*job
	var errs []error
	for _, path := range files {
		f, err := lab.Load(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		jobs = append(jobs, jobsOf(f)...)
	}
	if kind == both {
		return addRealJobs(jobs), errors.Join(errs...)
	}
	for _, j := range jobs {
		j.components = kind
	}
	return jobs, errors.Join(errs...)
}

// jobsOf lists what is to be run of a lab: the claims in each setting of a
// design, and the lab's own flows in each variant and setting.
func jobsOf(f *lab.File) []*job {
	var jobs []*job
	l := f.Lab
	isDesign := slices.ContainsFunc(claims.Designs, func(d claims.Design) bool { return d.Name == l.Metadata.Name }) ||
		claims.IsLab(l.Metadata.Name)
	if isDesign {
		if len(l.Spec.Settings) == 0 {
			jobs = append(jobs, &job{file: f, claims: true})
		}
		for i := range l.Spec.Settings {
			jobs = append(jobs, &job{file: f, setting: &l.Spec.Settings[i], claims: true})
		}
	}
	var variants []string
	if len(l.Spec.AllFlows()) > 0 || len(l.Spec.Steps) > 0 || !isDesign && len(l.Spec.Variants) == 0 {
		variants = append(variants, "")
	}
	for _, v := range l.Spec.Variants {
		variants = append(variants, v.Name)
	}
	for _, v := range variants {
		if len(l.Spec.Settings) == 0 {
			jobs = append(jobs, &job{file: f, variant: v})
		}
		for i := range l.Spec.Settings {
			jobs = append(jobs, &job{file: f, variant: v, setting: &l.Spec.Settings[i]})
		}
	}
	return jobs
}

// addRealJobs makes each job run with the models and adds one with real components.
func addRealJobs(jobs []*job) []*job {
	for _, j := range slices.Clone(jobs) {
		j.components, j.compared = labfile.Model, true
		other := *j
		other.components, other.model = labfile.Real, j
		jobs = append(jobs, &other)
	}
	return jobs
}
