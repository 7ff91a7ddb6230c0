package claims

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSystems: the documents describe 36 systems; each leads to claims, names
// labs and code that exist, and says what is missing.
func TestSystems(t *testing.T) {
	l := loadLedger(t)
	systems, err := l.Systems()
	if err != nil {
		t.Fatal(err)
	}
	if len(systems) != 36 {
		t.Errorf("%d systems; the documents describe 36", len(systems))
	}
	ids := map[string]bool{}
	for i, s := range systems {
		if s.Number != i+1 {
			t.Errorf("system %s has the number %d in place %d", s.ID, s.Number, i+1)
		}
		if ids[s.ID] || !idForm.MatchString(s.ID) {
			t.Errorf("system %d: the id %q is used twice or malformed", s.Number, s.ID)
		}
		ids[s.ID] = true
		if len(s.Claims) == 0 {
			t.Errorf("system %s has no claims", s.ID)
		}
		if s.Group == "" || s.Title == "" || s.Text == "" || s.Missing == "" || len(s.Code) == 0 {
			t.Errorf("system %s needs group, title, text, code, and what is missing", s.ID)
		}
		for _, dir := range s.Code {
			if !hasGo(filepath.Join("..", "..", filepath.FromSlash(dir))) {
				t.Errorf("system %s: %s is not a package", s.ID, dir)
			}
		}
	}
}

func hasGo(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(names, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".go") })
}

// TestSystemsLead: a glob that leads nowhere is a mistake, and a claim that two
// globs of a system name counts once.
func TestSystemsLead(t *testing.T) {
	l := loadLedger(t)
	old := systemData
	t.Cleanup(func() { systemData = old })
	systemData = []byte(
		"- {number: 1, id: a, group: g, title: t, text: x, claims: [\"flow-*\", flow-udp, \"area:icmp\"]}\n- {number: 2, id: b, group: g, title: t, text: x, claims: [no-such-*], designs: [overlay-*, moon]}\n")
	systems, err := l.Systems()
	if err == nil || !strings.Contains(err.Error(), `system b: no claim or area is called "no-such-*"`) {
		t.Fatalf("the error is %v", err)
	}
	if !strings.Contains(err.Error(), `system b: no design is called "moon"`) ||
		!slices.Equal(systems[1].Designs, []string{"overlay-win-overlay", "overlay-flannel-vxlan"}) {
		t.Errorf("designs %v, error %v", systems[1].Designs, err)
	}
	n := 0
	for _, id := range systems[0].Claims {
		if id == "flow-udp" {
			n++
		}
	}
	if n != 1 || !slices.Contains(systems[0].Claims, "flow-container-localhost") ||
		!slices.Contains(systems[0].Claims, "icmp-test-with-curl") {
		t.Errorf("flow-udp is there %d times among %d claims", n, len(systems[0].Claims))
	}
}
