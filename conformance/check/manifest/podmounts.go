package manifest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

func itoa(i int) string { return strconv.Itoa(i) }

// fileVolumes are the sources whose entries are files, so that a subPath of
// them is as a rule a single file.
var fileVolumes = []string{"configMap", "secret", "downwardAPI", "projected"}

func subpathMounts(p *Pod, at func(string) *yaml.Node, args map[string]string) []subject.Hit {
	var hits []subject.Hit
	for _, c := range p.placedContainers() {
		for i, m := range c.VolumeMounts {
			field, path := "subPath", m.SubPath
			if m.SubPathExpr != "" {
				field, path = "subPathExpr", m.SubPathExpr
			}
			if path == "" {
				continue
			}
			kind := p.volumeKind(m.Name)
			if file := slices.Contains(fileVolumes, kind); args["of"] == "file" && !file || args["of"] == "other" && file {
				continue
			}
			where := c.path + ".volumeMounts[" + itoa(i) + "]." + field
			hits = append(hits, subject.Hit{At: at(where), Field: where,
				Vars: map[string]string{"container": c.Name, "volume": m.Name, "kind": kind, "path": path}})
		}
	}
	return hits
}

// resolvConfMounts looks at the path in the container, and at what of the
// volume is mounted: a host's file, or a file of a volume.
func resolvConfMounts(p *Pod, at func(string) *yaml.Node, _ map[string]string) []subject.Hit {
	names := func(path string) bool {
		parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
		return len(parts) > 0 && strings.EqualFold(parts[len(parts)-1], "resolv.conf")
	}
	host := map[string]string{}
	for _, v := range p.Spec.Volumes {
		if v.HostPath != nil {
			host[v.Name] = v.HostPath.Path
		}
	}
	var hits []subject.Hit
	for _, c := range p.placedContainers() {
		for i, m := range c.VolumeMounts {
			if !names(m.MountPath) && !names(m.SubPath) && !names(host[m.Name]) {
				continue
			}
			where := c.path + ".volumeMounts[" + itoa(i) + "].mountPath"
			hits = append(hits, subject.Hit{At: at(where), Field: where, Vars: map[string]string{"container": c.Name, "path": m.MountPath}})
		}
	}
	return hits
}

// volumeKind is the name of a volume's source in the API, "" when the pod has
// no such volume (a claim template of a StatefulSet).
func (p *Pod) volumeKind(name string) string {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Name == name {
			return kindOf(&p.Spec.Volumes[i].VolumeSource)
		}
	}
	return ""
}

// volumesOfKind looks through claims: a pod that names a claim uses what is
// behind the PersistentVolume that the claim is bound to.
func volumesOfKind(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	p, ok := s.Value.(*Pod)
	if !ok || p.Spec == nil {
		return nil
	}
	kinds := strings.FieldsFunc(args["kinds"], func(r rune) bool { return r == ',' || r == ' ' })
	var hits []subject.Hit
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		kind, by := kindOf(&v.VolumeSource), "the volume "+v.Name
		where := "spec.volumes[" + itoa(i) + "]." + kind
		if v.PersistentVolumeClaim != nil {
			pv := boundVolume(c.All, p.namespace, v.PersistentVolumeClaim.ClaimName)
			if pv == nil {
				continue
			}
			kind, by = kindOf(&pv.Spec.PersistentVolumeSource), "the PersistentVolume "+pv.Name+" of the claim "+v.PersistentVolumeClaim.ClaimName
			where += ".claimName"
		}
		if slices.Contains(kinds, kind) {
			hits = append(hits, subject.Hit{At: nodeAt(s.Root, where), Field: where,
				Vars: map[string]string{"volume": v.Name, "kind": kind, "by": by}})
		}
	}
	return hits
}

// boundVolume finds the PersistentVolume that a claim names, or that names
// the claim, among the files of the run. A namespace that a manifest leaves
// out counts as the same.
func boundVolume(all []*subject.Subject, namespace, claim string) *corev1.PersistentVolume {
	same := func(a, b string) bool { return a == b || a == "" || b == "" }
	name := ""
	for _, s := range all {
		if c, ok := s.Value.(*corev1.PersistentVolumeClaim); ok && c.Name == claim && same(c.Namespace, namespace) {
			name = c.Spec.VolumeName
		}
	}
	for _, s := range all {
		v, ok := s.Value.(*corev1.PersistentVolume)
		if !ok {
			continue
		}
		ref := v.Spec.ClaimRef
		if name != "" && v.Name == name || ref != nil && ref.Name == claim && same(ref.Namespace, namespace) {
			return v
		}
	}
	return nil
}

// kindOf is the JSON name of the one field of a volume source that is set.
func kindOf(volumeSource any) string {
	text, err := yamlNode(volumeSource)
	if err != nil || text.Kind != yaml.MappingNode || len(text.Content) == 0 {
		return ""
	}
	return text.Content[0].Value
}

// yamlNode is a typed part of an object as a tree, by its JSON names.
func yamlNode(v any) (*yaml.Node, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil || len(n.Content) == 0 {
		return &n, err
	}
	return n.Content[0], nil
}
