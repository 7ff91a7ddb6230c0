package hns

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A policy is written out as it came in: order of fields, fields and types that
// are not known, values that are given although they are the default.
func TestPolicyKeepsItsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"Type":"OutBoundNAT","Settings":{"Exceptions":["10.0.0.0/8"],"MadeUp":true,"VirtualIP":"","Flags":0}}`,
		`{"Type":"outboundnat","Settings":{"Exceptions":"not a list"}}`,
		`{"Type":"ACL","Settings":{"Priority":0,"Direction":"In","Action":"Allow","Id":"<a&b>"}}`,
		`{"Type":"NoSuchPolicy","Settings":{"b":1,"a":[1,{"x":null}]}}`,
		`{"Type":"PortName","Settings":"text"}`,
		`{"Type":"HostRoute","Settings":null}`,
		`{"Type":"L2Driver"}`,
	} {
		var p Policy
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode([]Policy{p}); err != nil || buf.String() != "["+text+"]\n" {
			t.Errorf("got  %swant [%s] (%v)", buf.String(), text, err)
		}
	}
}

// Each type of settings is read back as what it was written from.
func TestPolicySettings(t *testing.T) {
	t.Parallel()
	for _, k := range policyKinds {
		if k.decode == nil {
			continue
		}
		name := k.typ
		s, err := k.decode(nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := NewPolicy(s)
		text, err := json.Marshal(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var back Policy
		if err := json.Unmarshal(text, &back); err != nil || back.Type() != s.Type() || back.settings == nil || back.malformed != nil {
			t.Errorf("%s became %+v (%v)", text, back, err)
		}
	}
	p := ParsePolicy("OUTBOUNDNAT", []byte(`{"VirtualIP":"10.1.0.9"}`))
	if v, ok := SettingsOf[OutBoundNATSettings](p); !ok || v.VirtualIP != "10.1.0.9" {
		t.Errorf("%+v %v", v, ok)
	}
	if _, ok := SettingsOf[ACLSettings](p); ok {
		t.Error("an OutBoundNAT policy has the settings of an ACL")
	}
	seen := 0
	for v := range EachSettings[OutBoundNATSettings]([]Policy{NewPolicy(QOSSettings{}), p, p}) {
		if seen++; v.VirtualIP == "" {
			t.Error("settings without their value")
		}
		break
	}
	if seen != 1 {
		t.Errorf("%d settings after the first was enough", seen)
	}
}
