package manifest

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// fileSystemTests follow a volume to the file system that it is formatted with.
var fileSystemTests = []subject.Test{{
	On: []string{"pod"}, Name: "volume-with-file-system", Args: []string{"file-systems"}, Vars: []string{"volume", "file-system", "by"},
	Doc: "A volume whose source, PersistentVolume or StorageClass, where the files have them, names one of file-systems. Claims are those of the pod, " +
		"of the claim templates of its StatefulSet, and of its ephemeral volumes.",
	Find: volumesWithFileSystem,
}}

// fsTypeParameters are the parameters by which provisioners are told a file system:
// that of the CSI provisioner, and those of in-tree plugins and older drivers.
var fsTypeParameters = []string{"csi.storage.k8s.io/fstype", "fstype", "fsType", "FSType"}

// claimed is a claim that a pod makes, and where.
type claimed struct {
	volume, path string
	spec         *corev1.PersistentVolumeClaimSpec
	// name is that of the claim, "" for one that is made of a template.
	name string
}

func volumesWithFileSystem(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	p, ok := s.Value.(*Pod)
	if !ok || p.Spec == nil {
		return nil
	}
	kinds := strings.FieldsFunc(args["file-systems"], func(r rune) bool { return r == ',' || r == ' ' })
	var hits []subject.Hit
	add := func(path, volume, fs, by string) {
		if slices.Contains(kinds, strings.ToLower(fs)) {
			hits = append(hits, hit(s, path, map[string]string{"volume": volume, "file-system": fs, "by": by}))
		}
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		add("spec.volumes["+itoa(i)+"]."+kindOf(&v.VolumeSource)+".fsType", v.Name, fileSystemOf(&v.VolumeSource), "the volume "+v.Name)
	}
	for _, k := range p.claims(c.All) {
		if k.name != "" {
			if pv := boundVolume(c.All, p.namespace, k.name); pv != nil {
				add(k.path, k.volume, fileSystemOf(&pv.Spec.PersistentVolumeSource), "the PersistentVolume "+pv.Name)
				continue
			}
		}
		if k.spec == nil || k.spec.StorageClassName == nil {
			continue
		}
		if class := storageClass(c.All, *k.spec.StorageClassName); class != nil {
			for _, name := range fsTypeParameters {
				add(k.path, k.volume, class.Parameters[name], "the StorageClass "+class.Name)
			}
		}
	}
	return hits
}

// claims are the claims of a pod; spec is nil for one that the files do not have.
func (p *Pod) claims(all []*subject.Subject) []claimed {
	var found []claimed
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		at := "spec.volumes[" + itoa(i) + "]."
		switch {
		case v.PersistentVolumeClaim != nil:
			k := claimed{volume: v.Name, path: at + "persistentVolumeClaim.claimName", name: v.PersistentVolumeClaim.ClaimName}
			for _, s := range all {
				if c, ok := s.Value.(*corev1.PersistentVolumeClaim); ok && c.Name == k.name &&
					(c.Namespace == p.namespace || c.Namespace == "" || p.namespace == "") {
					k.spec = &c.Spec
				}
			}
			found = append(found, k)
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			found = append(found, claimed{volume: v.Name, path: at + "ephemeral.volumeClaimTemplate", spec: &v.Ephemeral.VolumeClaimTemplate.Spec})
		}
	}
	for _, s := range all {
		o, ok := s.Value.(*object)
		if !ok || s.On != "object" || o.kind != p.kind || o.name != p.name || o.namespace != p.namespace {
			continue
		}
		set, ok := o.typed.(*appsv1.StatefulSet)
		if !ok {
			continue
		}
		for i := range set.Spec.VolumeClaimTemplates {
			t := &set.Spec.VolumeClaimTemplates[i]
			if at := p.mountOf(t.Name); at != "" {
				found = append(found, claimed{volume: t.Name, path: at, spec: &t.Spec})
			}
		}
	}
	return found
}

// mountOf is the place of the first mount of a volume.
func (p *Pod) mountOf(volume string) string {
	for _, c := range p.placedContainers() {
		for i, m := range c.VolumeMounts {
			if m.Name == volume {
				return c.path + ".volumeMounts[" + itoa(i) + "].name"
			}
		}
	}
	return ""
}

func storageClass(all []*subject.Subject, name string) *storagev1.StorageClass {
	for _, s := range all {
		if o, ok := s.Value.(*object); ok {
			if c, ok := o.typed.(*storagev1.StorageClass); ok && c.Name == name {
				return c
			}
		}
	}
	return nil
}

// fileSystemOf is the fsType of a volume source, "" where it has none.
func fileSystemOf(volumeSource any) string {
	n, err := yamlNode(volumeSource)
	if err != nil || len(n.Content) < 2 {
		return ""
	}
	for i := 0; i+1 < len(n.Content[1].Content); i += 2 {
		if n.Content[1].Content[i].Value == "fsType" {
			return n.Content[1].Content[i+1].Value
		}
	}
	return ""
}
