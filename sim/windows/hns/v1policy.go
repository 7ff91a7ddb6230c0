package hns

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A v1 policy is flat: {"Type":"ROUTE","DestinationPrefix":...}. The types of
// v2 appear in v1 output flat under their own name (Get-HnsNetwork shows
// {"Type":"RemoteSubnetRoute",...}) or with Settings as v2 has them.

// natV1 is a policy type of HNS v1.
const natV1 = "NAT"

// protocolNumbers are the names that a v1 NAT policy uses.
var protocolNumbers = map[string]int{"tcp": 6, "udp": 17, "icmp": 1}

// FromPolicyV1 converts one v1 policy. A type that HCN v2 does not have keeps
// its name.
func FromPolicyV1(raw json.RawMessage) (Policy, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(raw, &in); err != nil {
		return Policy{}, err
	}
	var name string
	if err := json.Unmarshal(take(in, "Type"), &name); err != nil || name == "" {
		return Policy{}, fmt.Errorf("policy has no Type")
	}
	typ := v2Type(name)
	if s, ok := in["Settings"]; ok {
		return ParsePolicy(typ, s), nil
	}
	out := v2Fields(typ, in)
	if typ == PolicyPortMapping {
		if err := numberProtocol(out); err != nil {
			return Policy{}, err
		}
	}
	if len(out) == 0 {
		return ParsePolicy(typ, nil), nil
	}
	settings, err := json.Marshal(out) // maps marshal sorted
	p := ParsePolicy(typ, settings)
	if strings.EqualFold(name, natV1) {
		p = p.AsNATV1()
	}
	return p, err
}

// AsNATV1 returns a PortMapping as the NAT policy of HNS v1 with the same fields, which
// is not the same (hns.nat-policy-v1).
func (p Policy) AsNATV1() Policy {
	p.v1NAT = p.Is(PolicyPortMapping)
	if m, ok := p.value.(portMapping); ok {
		m.v1 = true
		p.value = m
	}
	return p
}

// v2Fields gives the fields of a v1 policy their names of HCN v2.
func v2Fields(typ PolicyType, in map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	fields := v1Fields(typ)
	for _, k := range sortedKeys(in) {
		v := in[k]
		if name := fields[k]; name != "" {
			k = name
			if typ == PolicyACL {
				// v1 has numbers where v2 has lists; zero means not given.
				text := strings.Trim(string(v), `"`)
				if given, ok := in[name]; text == "0" || ok && string(given) != `""` {
					continue
				}
				v = json.RawMessage(strconv.Quote(text))
			}
		}
		if _, taken := out[k]; taken && string(v) == `""` {
			continue
		}
		out[k] = v
	}
	return out
}

// numberProtocol makes the protocol of a v1 NAT policy a number: "TCP" is 6.
func numberProtocol(out map[string]json.RawMessage) error {
	var name string
	if json.Unmarshal(out["Protocol"], &name) != nil {
		return nil // it is one
	}
	number, ok := protocolNumbers[strings.ToLower(name)]
	if !ok {
		n, err := strconv.Atoi(name)
		if err != nil {
			return fmt.Errorf("NAT policy: protocol %q is neither TCP, UDP nor a number", name)
		}
		number = n
	}
	out["Protocol"] = json.RawMessage(strconv.Itoa(number))
	return nil
}

// v1Fields maps the names that a type's fields have in v1 to those of v2.
func v1Fields(typ PolicyType) map[string]string {
	if k := policyKindOf(typ); k != nil {
		return k.v1Fields
	}
	return nil
}

// v2Type returns the v2 name of a v1 policy type, in v2's spelling.
func v2Type(name string) PolicyType {
	if k := kindsByV1[strings.ToUpper(name)]; k != nil {
		return k.typ
	}
	if k := policyKindOf(PolicyType(name)); k != nil {
		return k.typ
	}
	return PolicyType(name)
}

func take(m map[string]json.RawMessage, key string) json.RawMessage {
	v := m[key]
	delete(m, key)
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

func fromPoliciesV1(raws []json.RawMessage) ([]Policy, error) {
	var ps []Policy
	for i, raw := range raws {
		p, err := FromPolicyV1(raw)
		if err != nil {
			return nil, fmt.Errorf("Policies[%d]: %w", i, err)
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// toPolicyV1 writes a policy as HNS v1 shows it: flat, with v1's names.
func toPolicyV1(p Policy) json.RawMessage {
	var in map[string]json.RawMessage
	if json.Unmarshal(orEmpty(p.text), &in) != nil || in == nil {
		in = map[string]json.RawMessage{}
	}
	out := map[string]json.RawMessage{}
	fields := v1Fields(p.typ)
	for _, k := range sortedKeys(in) {
		v := in[k]
		for _, old := range sortedKeys(fields) {
			// An ACL keeps v2's lists: v1 has them too, beside the single numbers.
			if fields[old] == k && p.typ != PolicyACL {
				k = old
				break
			}
		}
		out[k] = v
	}
	typ := string(p.typ)
	if k := policyKindOf(p.typ); k != nil && k.v1 != "" && (k.v1 != natV1 || p.v1NAT) {
		typ = k.v1
	}
	if typ == natV1 {
		var n int
		if json.Unmarshal(in["Protocol"], &n) == nil {
			for _, name := range sortedKeys(protocolNumbers) {
				if protocolNumbers[name] == n {
					out["Protocol"] = json.RawMessage(strconv.Quote(strings.ToUpper(name)))
				}
			}
		}
	}
	out["Type"] = json.RawMessage(strconv.Quote(typ))
	raw, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage(`{"Type":` + strconv.Quote(typ) + `}`)
	}
	return raw
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
