package plan

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// records are the names outside of the cluster, and who is asked for them. Without a
// server for all names (the zone "."), the cluster DNS has the hosts' names itself.
func (p *Plan) records(s *labfile.Spec) error {
	var r reader
	public, addresses := dns.Records{}, map[string]netip.Addr{}
	for _, h := range s.Hosts {
		addresses[h.Name] = r.addr(h.Address)
		if h.DNSName != "" {
			public[h.DNSName] = dns.Answer{Addr: addresses[h.Name]}
		}
	}
	p.Records = r.answers(s.DNS.Records)
	for _, zone := range slices.Sorted(maps.Keys(s.DNS.Forward)) {
		f := dns.Forward{Zone: zone}
		for _, to := range s.DNS.Forward[zone] {
			a, isHost := addresses[strings.TrimPrefix(to, "host/")]
			if !isHost {
				a = r.addr(to)
			}
			f.Servers = append(f.Servers, a)
		}
		if zone == "." {
			p.NodeServers = f.Servers
		}
		p.Forward = append(p.Forward, f)
	}
	if p.NodeServers == nil {
		own := p.Records
		p.Records = maps.Clone(public)
		maps.Copy(p.Records, own)
	}
	for i, h := range s.Hosts {
		if len(h.Records) == 0 {
			continue
		}
		names := r.answers(h.Records)
		if len(h.Zones) == 0 { // a resolver knows the world's names
			for name, a := range public {
				if _, own := names[name]; !own {
					names[name] = a
				}
			}
		}
		p.Hosts[i].Names = &dns.Server{Zones: h.Zones, Records: names}
	}
	return r.err()
}

// answers reads the records of a name server.
func (r *reader) answers(texts map[string]string) dns.Records {
	all := dns.Records{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		a, err := dns.ParseAnswer(texts[name])
		r.note(err)
		all[name] = a
	}
	return all
}
