package vfp

import (
	"math/rand/v2"
	"testing"
)

// A port whose layers are made later does what one does whose layers are set at once,
// whatever comes between: packets, other layers, a reset. And it makes them when the
// first packet comes, not before.
func TestLayersLater(t *testing.T) {
	t.Parallel()
	policies := []string{
		"layer ACL; block in 100 from 10.0.0.1; allow in 200 any",
		"layer ACL; allow in 100 from 10.0.0.1; block in 200 any",
		"layer A; dynnat out 1 any => pool 192.168.1.11 50048; layer ACL; block in 100 from 10.0.0.2",
		"layer ACL block; allow out 1 any",
	}
	packets := []string{"udp 10.0.0.1:1 > 10.244.1.4:2", "udp 10.244.1.4:2 > 10.0.0.1:1", "tcp 10.0.0.2:1 > 10.244.1.4:80",
		"tcp 10.244.1.4:80 > 10.0.0.2:1"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		at, later := port(), port()
		made := 0
		set := func(i int) {
			at.SetLayers(policy(t, policies[i]))
			later.SetLayersLater(func() []*Layer { made++; return policy(t, policies[i]) })
		}
		set(0)
		if made != 0 {
			t.Fatal("the layers were made before a packet came")
		}
		for n := range 40 {
			switch r.IntN(5) {
			case 0:
				set(r.IntN(len(policies)))
			case 1:
				at.Reset()
				later.Reset()
			default:
				dir, text := []Direction{In, Out}[r.IntN(2)], packets[r.IntN(len(packets))]
				p, q := parse(t, text), parse(t, text)
				a, b := at.Process(p, dir, &Env{}), later.Process(q, dir, &Env{})
				if a != b || p.String() != q.String() {
					t.Fatalf("seed %d, step %d, %s %s: %+v %s, later %+v %s", seed, n, text, dir, a, p, b, q)
				}
			}
		}
	}
}
