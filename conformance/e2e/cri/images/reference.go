package images

import (
	"fmt"

	"github.com/distribution/reference"
)

// Reference names an image as containerd does: with registry and tag filled in, and
// without the tag where there is a digest.
type Reference struct {
	// Name is the whole reference: "docker.io/library/busybox:1.37".
	Name string
	// Repository is its part before tag and digest, "docker.io/library/busybox".
	Repository string
	// Tag and Digest: one of them is set.
	Tag, Digest string
}

// ParseReference reads a reference as people write it into a pod. The rules are those of
// github.com/distribution/reference, which containerd uses.
func ParseReference(s string) (Reference, error) {
	named, err := reference.ParseDockerRef(s)
	if err != nil {
		// The text is containerd's.
		return Reference{}, fmt.Errorf("failed to parse image reference %q: %w", s, err)
	}
	r := Reference{Name: named.String(), Repository: named.Name()}
	switch n := named.(type) {
	case reference.Canonical:
		r.Digest = n.Digest().String()
	case reference.Tagged:
		r.Tag = n.Tag()
	}
	return r, nil
}
