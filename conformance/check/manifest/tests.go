package manifest

import (
	"slices"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// Tests returns the conditions on Kubernetes objects that a field alone cannot
// say.
func Tests() []subject.Test {
	return slices.Concat(imageTests, commandTests, fileSystemTests, podTests, resourceTests, schedulingTests, serviceTests)
}
