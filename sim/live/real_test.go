package live

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// TestAStoryWithPrograms is the story with kube-proxy.exe and the plugin's program on the
// nodes, which follow each step, and 200 connections in all.
func TestAStoryWithPrograms(t *testing.T) {
	winetest.Need(t)
	f, err := lab.Load("../lab/testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	playStory(t, f, lab.Options{Components: spec.Real, Keep: true, Setting: &spec.Setting{Kubernetes: "1.33.13"}}, 40)
}
