package cni

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzParseConf(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(fixtures, "*"))
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(
		[]byte(
			`{"name":"x","type":"win-bridge","policies":[{"name":"EndpointPolicy","value":{"Type":"NAT","Protocol":"TCP","InternalPort":80}}]}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ParseNetConf("n.json", data); err != nil && !strings.Contains(err.Error(), "n.json:") {
			t.Errorf("error without a place: %v", err)
		}
		c, err := ParseConf("a.conf", data)
		if err != nil {
			if !strings.Contains(err.Error(), "a.conf:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		again, err := c.forNode(anyNode)
		if err != nil || len(again.policies) != len(c.policies) {
			t.Errorf("For: %v", err)
		}
		for _, p := range c.policies {
			if p.Origin == nil || p.Origin.Line < 1 || p.Type() == "" {
				t.Errorf("policy %+v", p)
			}
		}
	})
}
