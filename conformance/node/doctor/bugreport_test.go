package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/observed"
)

func TestBugReport(t *testing.T) {
	got := BugReport(folder(t, "healthy-l2bridge"), claims.Target{})
	const file = "testdata/bugreport.md"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
	empty := BugReport(observed.ReadFS(os.DirFS(t.TempDir())), claims.Target{})
	for _, want := range []string{"(kubectl version)", "(cmd /c ver)", "what was expected", "the logs of kubelet", "/sig windows"} {
		if !strings.Contains(empty, want) {
			t.Errorf("the report about nothing does not ask for %q:\n%s", want, empty)
		}
	}
}
