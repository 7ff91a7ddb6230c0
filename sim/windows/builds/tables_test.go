package builds

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write tables.json")

// TestTablesAreWhatPeopleWrite: tables.json has what the YAML files have, and they have no key
// that nothing reads: the program refuses unknown ones in tables.json.
func TestTablesAreWhatPeopleWrite(t *testing.T) {
	all := map[string]any{}
	for _, name := range []string{"builds", "features", "quirks"} {
		text, err := os.ReadFile(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s.yaml: %v", name, err)
		}
		all[name] = v
	}
	want, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("tables.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, tablesJSON) {
		t.Error("tables.json is not what the YAML files say; run go test ./sim/windows/builds -update")
	}
	var file tables
	if err := decode(want, &file); err != nil {
		t.Error(err)
	}
}
