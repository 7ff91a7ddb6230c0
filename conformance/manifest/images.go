package manifest

import "github.com/winlab-dev/winlab/conformance/subject"

// Image is what is known of a container image.
type Image struct {
	OS, Build, Release string
	MultiArch          bool
	Why                string
}

// ImageOf says what is known of an image.
func ImageOf(image string) Image { return Image{} }

var imageTests []subject.Test
