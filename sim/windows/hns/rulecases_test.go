package hns

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Whatever HNS can be told must have a case in testdata/rules that shows which rules
// it becomes: each policy type in each place, each field of its settings, each flag,
// and each shape of a load balancer with and without DSR. A new field fails here
// until it has one.
func TestEverythingHasARuleCase(t *testing.T) {
	s := seenInCases(t)
	for _, k := range policyKinds {
		for _, place := range k.on {
			s.need(t, fmt.Sprintf("%s policy %s", place, k.typ))
		}
		if k.decode == nil {
			continue
		}
		settings, _ := k.decode(nil)
		for _, f := range fieldNames(reflect.TypeOf(settings)) {
			s.need(t, fmt.Sprintf("policy %s: field %s", k.typ, f))
		}
	}
	for _, typ := range []PolicyType{PolicyPortMapping, PolicyOutBoundNAT} {
		for _, f := range []NatFlags{NatFlagLocalRoutedVIP, NatFlagIPv6} {
			if typ == PolicyPortMapping || f == NatFlagIPv6 {
				s.need(t, fmt.Sprintf("policy %s: flag %d", typ, f))
			}
		}
	}
	for _, typ := range networkTypes {
		s.need(t, "network type "+string(typ))
	}
	for _, o := range []any{LoadBalancer{}, LBPortMapping{}} {
		for _, f := range fieldNames(reflect.TypeOf(o)) {
			if f != "SchemaVersion" {
				s.need(t, fmt.Sprintf("%T: field %s", o, f))
			}
		}
	}
	s.need(t, fmt.Sprintf("load balancer: flag %d", LBFlagIPv6))
	for _, way := range []string{"DSR", "no DSR"} {
		s.need(t, way+" for IPv6")
		for _, backends := range []string{"local", "remote", "local and remote"} {
			s.need(t, way+" with backends "+backends)
		}
		for _, vips := range []string{"the node's address", "one address", "two addresses"} {
			s.need(t, way+" for "+vips)
		}
		for _, f := range []PortFlags{PortFlagILB, PortFlagLocalRoutedVIP, PortFlagUseMux, PortFlagPreserveDIP, PortFlagVipExternalIP} {
			s.need(t, fmt.Sprintf("%s with port flag %d", way, f))
		}
		for _, d := range []Distribution{DistributionNone, DistributionSourceIPProtocol, DistributionSourceIP} {
			s.need(t, fmt.Sprintf("%s with distribution %d", way, d))
		}
		for _, p := range []int{6, 17} {
			s.need(t, fmt.Sprintf("%s with protocol %d", way, p))
		}
	}
}

// seen is what the cases hold, in words.
type seen map[string]bool

func (s seen) need(t *testing.T, what string) {
	t.Helper()
	if !s[what] {
		t.Errorf("no case of testdata/rules has %s", what)
	}
}

func seenInCases(t *testing.T) seen {
	s := seen{}
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := newCompileCase(t, string(text))
		remote := map[string]bool{}
		for _, call := range c.calls() {
			word, rest, _ := strings.Cut(call, " ")
			if word == "modifyEndpoint" {
				_, rest, _ = strings.Cut(rest, " ")
			}
			var o map[string]any
			if json.Unmarshal([]byte(rest), &o) != nil {
				continue
			}
			switch word {
			case "endpoint":
				id, _ := o["ID"].(string)
				remote[id] = o["Flags"] != nil
				s.policies(onEndpoint, o["Policies"])
			case "modifyEndpoint":
				s.policies(onEndpoint, o["Policies"])
			case "network":
				s["network type "+fmt.Sprint(o["Type"])] = true
				s.policies(onNetwork, o["Policies"])
				for _, i := range list2(o["Ipams"]) {
					for _, sub := range list2(i["Subnets"]) {
						s.policies(onSubnet, sub["Policies"])
					}
				}
			case "loadBalancer":
				s.loadBalancer(o, remote)
			}
		}
	}
	return s
}

// list2 is a list of objects.
func list2(v any) (all []map[string]any) {
	l, _ := v.([]any)
	for _, x := range l {
		if o, ok := x.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

func (s seen) policies(place scope, v any) {
	for _, p := range list2(v) {
		typ := PolicyType(fmt.Sprint(p["Type"]))
		if k := policyKindOf(typ); k != nil {
			typ = k.typ
		}
		s[fmt.Sprintf("%s policy %s", place, typ)] = true
		settings, _ := p["Settings"].(map[string]any)
		for f, v := range settings {
			if !zero(v) {
				s[fmt.Sprintf("policy %s: field %s", typ, f)] = true
			}
			if n, ok := v.(float64); ok && f == "Flags" {
				for bit := 1; bit <= int(n); bit <<= 1 {
					if int(n)&bit != 0 {
						s[fmt.Sprintf("policy %s: flag %d", typ, bit)] = true
					}
				}
			}
		}
	}
}

func (s seen) loadBalancer(o map[string]any, remote map[string]bool) {
	for f, v := range o {
		if !zero(v) {
			s["hns.LoadBalancer: field "+f] = true
		}
	}
	flags, _ := o["Flags"].(float64)
	way := "no DSR"
	if int(flags)&int(LBFlagDSR) != 0 {
		way = "DSR"
	}
	if int(flags)&int(LBFlagIPv6) != 0 {
		s[way+" for IPv6"], s[fmt.Sprintf("load balancer: flag %d", LBFlagIPv6)] = true, true
	}
	vips, _ := o["FrontendVIPs"].([]any)
	s[way+" for "+[]string{"the node's address", "one address", "two addresses"}[min(len(vips), 2)]] = true
	kinds := map[string]bool{}
	backends, _ := o["HostComputeEndpoints"].([]any)
	for _, b := range backends {
		kinds[map[bool]string{false: "local", true: "remote"}[remote[fmt.Sprint(b)]]] = true
	}
	s[way+" with backends "+strings.Join(slices.Sorted(maps.Keys(kinds)), " and ")] = true
	for _, m := range list2(o["PortMappings"]) {
		for f, v := range m {
			if !zero(v) {
				s["hns.LBPortMapping: field "+f] = true
			}
		}
		n, _ := m["Flags"].(float64)
		for bit := 1; bit <= int(n); bit <<= 1 {
			if int(n)&bit != 0 {
				s[fmt.Sprintf("%s with port flag %d", way, bit)] = true
			}
		}
		d, _ := m["DistributionType"].(float64)
		p, _ := m["Protocol"].(float64)
		s[fmt.Sprintf("%s with distribution %d", way, int(d))], s[fmt.Sprintf("%s with protocol %d", way, int(p))] = true, true
	}
}

func zero(v any) bool {
	return v == nil || reflect.ValueOf(v).IsZero() || reflect.ValueOf(v).Kind() == reflect.Slice && reflect.ValueOf(v).Len() == 0
}

// fieldNames are the names of a struct's fields in JSON.
func fieldNames(typ reflect.Type) (names []string) {
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
