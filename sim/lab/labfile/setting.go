package labfile

import "slices"

// WithSetting is the lab with a setting's versions instead of its own.
func (f *File) WithSetting(set *Setting) *File {
	l := *f.Lab
	l.Spec = applySetting(l.Spec, set)
	out := *f
	out.Lab = &l
	return &out
}

// applySetting puts a setting's versions into a copy of the spec.
func applySetting(s Spec, set *Setting) Spec {
	s.Kubernetes = set.Kubernetes
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if set.Build != "" && s.Nodes[i].OS == "windows" {
			s.Nodes[i].Build, s.Nodes[i].Builds = set.Build, nil
		}
		s.Nodes[i].Kubernetes = ""
	}
	if set.Proxy != nil {
		kind := s.Proxy.Components
		s.Proxy = *set.Proxy
		if s.Proxy.Components == "" {
			s.Proxy.Components = kind
		}
		if s.Proxy.Mode == "" {
			s.Proxy.Mode = "kernelspace"
		}
	}
	if set.Plugin != "" {
		s.Network.Version = set.Plugin
	}
	return s
}

// WithSteps returns a copy of the lab whose steps are these, for changes to a cluster
// that runs. They have no place in the file.
func (f *File) WithSteps(steps []Step) *File {
	l := *f.Lab
	l.Spec.Steps = steps
	out := *f
	out.Lab = &l
	return &out
}
