package vfp

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// What layers, groups and the order of rules do.
func TestLayers(t *testing.T) {
	t.Parallel()
	const blocked = trace.ACLBlock
	for _, tc := range []struct {
		name, policy string
		steps        []step
	}{
		{"the lower priority number decides", "layer ACL; allow in 300 any; block in 200 from 10.0.0.0/8; allow in 100 from 10.0.0.1", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:2", ""},
			{0, In, "udp 10.0.0.2:1 > 10.244.1.4:2", blocked},
			{0, In, "udp 192.168.1.1:1 > 10.244.1.4:2", ""},
		}},
		{"of equal priority the first decides", "layer ACL; block in 100 from 10.0.0.1; allow in 100 any; block in 100 any", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:2", blocked},
			{0, In, "udp 10.0.0.2:1 > 10.244.1.4:2", ""},
		}},
		{"one rule decides in a layer, whatever its flag",
			"layer A; transposition out 1 any nonterminating => dst 10.9.9.1; transposition out 2 any => src 10.9.9.2", []step{
				{0, Out, "udp 10.0.0.1:1 > 10.0.0.2:2", "udp 10.0.0.1:1 > 10.9.9.1:2"},
			}},
		{"the next layer sees what the last one made",
			"layer A; transposition out 1 to 10.0.0.2 => dst 10.0.0.3; layer B; transposition out 1 to 10.0.0.3 => dst 10.0.0.4", []step{
				{0, Out, "udp 10.0.0.1:1 > 10.0.0.2:2", "udp 10.0.0.1:1 > 10.0.0.4:2"},
			}},
		{"inbound the layers are visited in the opposite order",
			"layer A; transposition in 1 to 10.0.0.3 => dst 10.0.0.4; layer B; transposition in 1 to 10.0.0.2 => dst 10.0.0.3", []step{
				{0, In, "udp 10.0.0.1:1 > 10.0.0.2:2", "udp 10.0.0.1:1 > 10.0.0.4:2"},
			}},
		{"a block ends the way through the layers", "layer A; block out 1 to 10.0.0.2; layer B; dynnat out 1 any => pool 192.168.1.11 50048",
			[]step{
				{0, Out, "udp 10.0.0.1:1 > 10.0.0.2:2", blocked},
				{0, Out, "udp 10.0.0.1:1 > 10.0.0.3:2", "udp 192.168.1.11:50048 > 10.0.0.3:2"}, // the first port is free
			}},
		{"rules are for one direction", "layer ACL; block out 1 any", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:2", ""},
			{0, Out, "udp 10.244.1.4:2 > 10.0.0.1:1", blocked},
		}},
		{"the group of the lower number comes first", "layer ACL; group late in 9; block in 1 any; group early in 3; allow in 500 from 10.0.0.1",
			[]step{
				{0, In, "udp 10.0.0.1:1 > 10.244.1.4:2", ""},
				{0, In, "udp 10.0.0.2:1 > 10.244.1.4:2", blocked},
			}},
		{"a group serves its family",
			"layer ACL; group four in 1 v4; block in 1 any; group six in 1 v6; allow in 1 any; group both in 2; block in 1 any", []step{
				{0, In, "udp 10.0.0.1:1 > 10.244.1.4:2", blocked},
				{0, In, "udp [fd00::1]:1 > [fd00::2]:2", ""},
			}},
		{"a group without a family serves both", "layer ACL; group both in 1; block in 1 port 2", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:2", blocked},
			{0, In, "udp [fd00::1]:1 > [fd00::2]:2", blocked},
		}},
		{"the default is to pass", "layer ACL; block in 1 port 80", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:81", ""},
		}},
		{"a layer may block by default", "layer ACL block; allow in 1 port 80", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:80", ""},
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:81", blocked},
			{0, Out, "udp 10.244.1.4:80 > 10.0.0.1:1", ""}, // the reply, by its flow
			{0, Out, "udp 10.244.1.4:81 > 10.0.0.1:1", blocked},
		}},
		{"a stateless layer knows no replies", "layer ACL stateless block; allow in 1 port 80", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:80", ""},
			{0, In, "tcp 10.0.0.1:1 > 10.244.1.4:80", ""}, // nor does it want a SYN
			{0, Out, "udp 10.244.1.4:80 > 10.0.0.1:1", blocked},
		}},
		{"a rule with a name of its own counts as such", "layer ACL; allow in 1 id mine from 10.0.0.1; block in 2 any", []step{
			{0, In, "udp 10.0.0.1:1 > 10.244.1.4:80", ""},
		}},
		{"no layers", "", []step{
			{0, In, "tcp 10.0.0.1:1 > 10.244.1.4:80", ""},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func() *Port { return port(policy(t, tc.policy)...) }, tc.steps)
		})
	}
}

// Layer.Group gives the group of a name and direction, whatever the family that
// it was asked for first.
func TestGroup(t *testing.T) {
	l := &Layer{}
	in4, out4 := l.Group("g", In, 4), l.Group("g", Out, 4)
	if in4 == out4 || l.Group("h", In, 4) == in4 {
		t.Error("groups of other directions and names are the same")
	}
	if again := l.Group("g", In, 4); again != in4 || in4.Family != 4 {
		t.Errorf("asked for again: family %d", again.Family)
	}
	if both := l.Group("g", In, 6); both != in4 || both.Family != 0 {
		t.Errorf("asked for with another family: family %d", both.Family)
	}
	if out4.Family != 4 {
		t.Errorf("the other direction serves family %d", out4.Family)
	}
}
