package wine

import (
	"net/netip"
	"testing"
)

func TestResolverValues(t *testing.T) {
	if all := (Resolver{}).values(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	got := map[string]any{}
	for _, v := range (Resolver{Servers: []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("8.8.8.8")}, Domain: "a",
		Suffixes: []string{"a", "b"}, Global: []string{"c"}}).values() {
		got[v.Key[len(v.Key)-1:]+" "+v.Name] = v.Data
	}
	for name, want := range map[string]string{"} NameServer": "10.96.0.10,8.8.8.8", "} Domain": "a", "} SearchList": "a,b",
		"s SearchList": "c"} {
		if got[name] != want {
			t.Errorf("%s: %v", name, got[name])
		}
	}
}
