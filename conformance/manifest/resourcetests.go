package manifest

import "github.com/winlab-dev/winlab/conformance/subject"

var resourceTests []subject.Test
