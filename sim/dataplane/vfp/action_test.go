package vfp

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// One action after the other: the rules, and packets that meet them in turn.
func TestActions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, policy string
		steps        []step
	}{
		{"allow changes nothing", "layer ACL block; allow out 1 tcp port 80", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", ""},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:81 syn", trace.ACLBlock},
		}},
		{"block drops for the reason that it has", "layer ACL; block out 1 tcp; block out 2 udp => unknown-vni", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", trace.ACLBlock},
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:80", trace.UnknownVNI},
		}},
		{"a stateful block keeps no flow", "layer ACL; block out 1 udp port 80 stateful; allow in 1 any", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:80", trace.ACLBlock},
			{0, In, "udp 10.0.0.1:80 > 10.244.1.4:1000", ""},
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:80", ""}, // by the flow of the allow rule
		}},
		{"nat of the destination, undone for replies", "layer NAT; nat in 1 tcp to 192.168.1.11 port 8080 => dst 10.244.1.4:80", []step{
			{0, In, "tcp 192.168.1.50:1000 > 192.168.1.11:8080 syn", "tcp 192.168.1.50:1000 > 10.244.1.4:80"},
			{0, Out, "tcp 10.244.1.4:80 > 192.168.1.50:1000 syn-ack", "tcp 192.168.1.11:8080 > 192.168.1.50:1000"},
			{0, Out, "tcp 10.244.1.4:80 > 192.168.1.50:1001 syn-ack", ""}, // a reply to nobody
		}},
		{"nat of the source, undone for replies", "layer NAT; nat out 1 udp => src 192.168.1.11:53", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", "udp 192.168.1.11:53 > 10.0.0.1:53"},
			{0, In, "udp 10.0.0.1:53 > 192.168.1.11:53", "udp 10.0.0.1:53 > 10.244.1.4:1000"},
		}},
		{"no translation of ICMP",
			"layer NAT; nat out 1 any => src 192.168.1.11; dynnat out 2 any => pool 192.168.1.12 50048; lbnat out 3 any => 10.244.2.4:80", []step{
				{0, Out, "ping 10.244.1.4 > 10.0.0.1", ""},
				{0, Out, "ping fd00::1 > fd00::2", ""},
				{0, Out, "gre 10.244.1.4 > 10.0.0.1", "gre 192.168.1.11 > 10.0.0.1"},
			}},
		{"dynnat takes a port for each connection", "layer NAT; dynnat out 1 any => pool 192.168.1.11 50048", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", "tcp 192.168.1.11:50048 > 10.0.0.1:80"},
			{0, Out, "tcp 10.244.1.4:1001 > 10.0.0.1:80 syn", "tcp 192.168.1.11:50049 > 10.0.0.1:80"},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", "tcp 192.168.1.11:50048 > 10.0.0.1:80"},
			{0, In, "tcp 10.0.0.1:80 > 192.168.1.11:50049 syn-ack", "tcp 10.0.0.1:80 > 10.244.1.4:1001"},
		}},
		{"dynnat without flows binds a port for each packet", "layer NAT stateless; dynnat out 1 any => pool 192.168.1.11 50048", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", "udp 192.168.1.11:50048 > 10.0.0.1:53"},
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", "udp 192.168.1.11:50049 > 10.0.0.1:53"},
			{0, In, "udp 10.0.0.1:53 > 192.168.1.11:50048", ""},
		}},
		{"lbnat to its backend and back", "layer LB; lbnat out 1 tcp to 10.96.0.10 port 80 => 10.244.2.4:8080@server", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn", "tcp 10.244.1.4:1000 > 10.244.2.4:8080 dstmac server"},
			{0, In, "tcp 10.244.2.4:8080 > 10.244.1.4:1000 syn-ack", "tcp 10.96.0.10:80 > 10.244.1.4:1000"},
		}},
		{"lbnat without backends", "layer LB; lbnat out 1 tcp to 10.96.0.10", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn", trace.NoBackend},
		}},
		{"lbnat with a pool hides the client", "layer LB; lbnat in 1 to 10.96.0.10 => 10.244.2.4:8080 pool 192.168.1.11 50048", []step{
			{0, In, "udp 192.168.1.50:1000 > 10.96.0.10:80", "udp 192.168.1.11:50048 > 10.244.2.4:8080"},
			{0, Out, "udp 10.244.2.4:8080 > 192.168.1.11:50048", "udp 10.96.0.10:80 > 192.168.1.50:1000"},
		}},
		{"lbnat that keeps the destination changes the MAC only", "layer LB; lbnat in 1 to 10.96.0.10 => keep 10.244.1.5:8080@server", []step{
			{0, In, "udp 192.168.1.50:1000 > 10.96.0.10:80", "udp 192.168.1.50:1000 > 10.96.0.10:80 dstmac server"},
			{0, Out, "udp 10.96.0.10:80 > 192.168.1.50:1000", ""},
		}},
		// The frame leaves the port with its MAC; replies come in where requests did.
		{"lbnat with hairpin", "layer LB; lbnat in 1 to 10.96.0.10 => hairpin 10.244.1.5:8080@server pool 192.168.1.11 50048", []step{
			{0, In, "tcp 192.168.1.50:1000 > 10.96.0.10:80 syn dstmac host", "tcp 192.168.1.11:50048 > 10.244.1.5:8080 dstmac server hairpin"},
			{0, In, "tcp 10.244.1.5:8080 > 192.168.1.11:50048 syn-ack dstmac host", "tcp 10.96.0.10:80 > 192.168.1.50:1000 dstmac pod hairpin"},
			{0, Out, "tcp 10.244.1.5:8080 > 192.168.1.11:50048 syn-ack", ""},
		}},
		{"a hairpin whose own packet is the reply", "layer LB; lbnat in 1 to 10.96.0.10 => hairpin 10.244.1.5:50048@server pool 10.96.0.10 50048",
			[]step{
				{0, In, "udp 10.244.1.5:50048 > 10.96.0.10:50048", "udp 10.96.0.10:50048 > 10.244.1.5:50048 dstmac server hairpin"},
				{0, In, "udp 10.244.1.5:50048 > 10.96.0.10:50048", "udp 10.96.0.10:50048 > 10.244.1.5:50048 dstmac server hairpin"},
			}},
		{"transposition sets any headers",
			"layer L2; transposition out 1 to 10.244.1.5 => dstmac server srcmac host; transposition out 2 icmp => dst 10.9.9.9", []step{
				{0, Out, "udp 10.244.1.4:1000 > 10.244.1.5:53", "udp 10.244.1.4:1000 > 10.244.1.5:53 srcmac host dstmac server"},
				{0, Out, "ping 10.244.1.4 > 10.0.0.1", "ping 10.244.1.4 > 10.9.9.9"},
				{0, In, "pong 10.9.9.9 > 10.244.1.4", ""}, // nothing undoes it
			}},
		{"a rewrite to the other family is left out",
			"layer A; transposition out 1 any => dst 10.0.0.9; layer B; transposition out 1 any => dst fd00::9", []step{
				{0, Out, "udp 10.0.0.1:1 > 10.0.0.2:2", "udp 10.0.0.1:1 > 10.0.0.9:2"},
				{0, Out, "udp 10.0.0.1:1 > 10.0.0.2:2", "udp 10.0.0.1:1 > 10.0.0.9:2"},
				{0, Out, "udp [fd00::1]:1 > [fd00::2]:2", "udp [fd00::1]:1 > [fd00::9]:2"},
			}},
		{"routeencap wraps every packet", "layer ENCAP stateless; routeencap out 1 to 10.244.2.0/24 => 192.168.1.11 192.168.1.12 4096", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:80",
				"vxlan 192.168.1.11 > 192.168.1.12 vni 4096 [tcp 10.244.1.4:1000 > 10.244.2.4:80] dstmac router"},
			{0, Out, "ping 10.244.1.4 > 10.244.2.4", "vxlan 192.168.1.11 > 192.168.1.12 vni 4096 [ping 10.244.1.4 > 10.244.2.4] dstmac router"},
			{0, Out, "ping 10.244.1.4 > 10.244.3.4", ""},
		}},
		{"a stateful routeencap keeps no flow", "layer ENCAP; routeencap out 1 to 10.244.2.0/24 stateful => 192.168.1.11 192.168.1.12 4096",
			[]step{
				{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:80",
					"vxlan 192.168.1.11 > 192.168.1.12 vni 4096 [tcp 10.244.1.4:1000 > 10.244.2.4:80] dstmac router"},
			}},
		{"decap opens the tunnels of its VNI",
			"layer DECAP stateless; decap in 1 to 192.168.1.11 vni 4096; block in 2 udp to 192.168.1.11 port 4789 => unknown-vni", []step{
				{0, In, "vxlan 192.168.1.12 > 192.168.1.11 vni 4096 [tcp 10.244.2.4:80 > 10.244.1.4:1000]",
					"tcp 10.244.2.4:80 > 10.244.1.4:1000 srcmac pod dstmac gw"},
				{0, In, "vxlan 192.168.1.12 > 192.168.1.11 vni 4097 [tcp 10.244.2.4:80 > 10.244.1.4:1000]", trace.UnknownVNI},
				{0, In, "vxlan 192.168.1.12 > 192.168.1.13 vni 4096 [ping 10.244.2.4 > 10.244.1.4]", ""},
				{0, In, "udp 192.168.1.12:1000 > 192.168.1.11:53", ""},
			}},
		{"decap of what is no tunnel packet", "layer DECAP stateless; decap in 1 udp", []step{
			{0, In, "udp 192.168.1.12:1000 > 192.168.1.11:53", trace.BadPacket},
		}},
		{"paroute gives the MAC addresses of the next hop",
			"layer PA_ROUTE stateless; paroute out 1 dstmac host => router; paroute out 2 dstmac server => nowhere", []step{
				{0, Out, "udp 10.244.1.4:1 > 10.0.0.1:2 dstmac host", "udp 10.244.1.4:1 > 10.0.0.1:2 srcmac host dstmac router"},
				{0, Out, "udp 10.244.1.4:1 > 10.0.0.1:2 dstmac server", trace.NoRoute},
				{0, Out, "udp 10.244.1.4:1 > 10.0.0.1:2 dstmac gw", ""},
			}},
		{"not modelled ends what the action would match", "layer ACL; unknown block out 1 tcp; unknown nat out 2 any", []step{
			{0, Out, "tcp 10.244.1.4:1 > 10.0.0.1:2", trace.ModelHole},
			{0, Out, "udp 10.244.1.4:1 > 10.0.0.1:2", trace.ModelHole},
			{0, Out, "ping 10.244.1.4 > 10.0.0.1", ""}, // NAT does not match it
			{0, In, "tcp 10.0.0.1:2 > 10.244.1.4:1", ""},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func() *Port { return port(policy(t, tc.policy)...) }, tc.steps)
		})
	}
}

// The names of actions are those of vfpctrl.
func TestActionTypes(t *testing.T) {
	for want, a := range map[string]Action{
		"allow": Allow{}, "block": Block{}, "nat": NAT{}, "dynnat": DynNAT{}, "lbnat": LBNAT{}, "routeencap": RouteEncap{},
		"decap": Decap{}, "transposition": &Transpose{}, "paroute": PARoute{},
	} {
		if got := a.Type(); got != want {
			t.Errorf("%T: %s, want %s", a, got, want)
		}
		if got := (NotModelled{Action: a}).Type(); got != want {
			t.Errorf("%T that is not modelled: %s, want %s", a, got, want)
		}
	}
}
