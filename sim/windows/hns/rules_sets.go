package hns

import (
	"slices"
	"strings"
)

// resolved is an ACL with the addresses of the sets that it names (hns.acl-address-set);
// some is false when it can match no packet, because no address is in all of its sets. One
// that names what the network does not have stays as it is.
func (a acl) resolved(n *Network) (_ acl, some bool) {
	if !a.namesSet {
		return a, true
	}
	sets := map[string]SetPolicySettings{}
	for v := range EachSettings[SetPolicySettings](n.Policies) {
		sets[v.Id] = v
	}
	local, okLocal := inAllSets(sets, a.localSets)
	remote, okRemote := inAllSets(sets, a.remoteSets)
	if !okLocal || !okRemote {
		return a, true
	}
	for _, field := range []struct {
		names string
		found []prefix
	}{{a.localSets, local}, {a.remoteSets, remote}} {
		if strings.TrimSpace(field.names) != "" && len(field.found) == 0 {
			return a, false
		}
	}
	a.namesSet, a.bySets = false, true
	a.local.addresses, a.remote.addresses = local, remote
	if a.in { // sets are of source and destination, whichever the direction
		a.local.addresses, a.remote.addresses = remote, local
	}
	return a, true
}

// inAllSets are the addresses that are in all sets of a list; ok is false when it names
// anything else than a set. Nested sets have one level (hns.nested-set-depth).
func inAllSets(sets map[string]SetPolicySettings, list string) (found []prefix, ok bool) {
	if strings.TrimSpace(list) == "" {
		return nil, true
	}
	for i, name := range strings.Split(list, ",") {
		set, has := sets[strings.TrimSpace(name)]
		if !has {
			return nil, false
		}
		members := prefixes(strings.Split(set.Values, ","))
		if set.PolicyType == setOfSets {
			members = nil
			for _, inner := range strings.Split(set.Values, ",") {
				m, has := sets[strings.TrimSpace(inner)]
				if !has && strings.TrimSpace(inner) != "" || has && m.PolicyType == setOfSets {
					return nil, false
				}
				members = append(members, prefixes(strings.Split(m.Values, ","))...)
			}
		}
		if i == 0 {
			found = members
			continue
		}
		found = intersection(found, members)
	}
	return found, true
}

// intersection is what two lists of prefixes have in common.
func intersection(a, b []prefix) []prefix {
	var all []prefix
	for _, p := range a {
		for _, q := range b {
			if !p.Overlaps(q.Prefix) {
				continue
			}
			narrow := p
			if q.Bits() > p.Bits() {
				narrow = q
			}
			if !slices.Contains(all, narrow) {
				all = append(all, narrow)
			}
		}
	}
	return all
}
