package vfp

import (
	"encoding/binary"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// key names packets in one direction at a port: those of a flow in a layer, or of a
// unified flow. It is a [packet.Tuple] without pointers, at which the collector need not
// look, in words that are compared and hashed at once.
type key struct {
	// src and dst are addresses; one of IPv4 is in the second half.
	src, dst [2]uint64
	// ports are, from the highest bits on, the source port, the destination port, the
	// identifier of ICMP, the protocol and the type of ICMP.
	ports uint64
	// way is the destination's MAC address, then the bits dirIn and isV6.
	way uint64
}

const (
	dirIn = 1 << iota
	isV6
)

// keyOf is the key of a packet's flow in a layer, as VFP sees it: ICMP by type, not by
// identifier (vfp.icmp-flow-key). The packet is IP.
func keyOf(p *packet.Packet, dir Direction) (k key) {
	h := p.Headers()
	be := binary.BigEndian
	// The headers say the same; the frame needs no conversion.
	if f := p.Bytes()[h.L3:]; h.IPVersion == 4 {
		k.src[1], k.dst[1] = uint64(be.Uint32(f[12:])), uint64(be.Uint32(f[16:]))
	} else {
		k.src, k.dst = [2]uint64{be.Uint64(f[8:]), be.Uint64(f[16:])}, [2]uint64{be.Uint64(f[24:]), be.Uint64(f[32:])}
		k.way = isV6
	}
	k.ports = uint64(h.SrcPort)<<48 | uint64(h.DstPort)<<32 | uint64(h.Proto)<<8 | uint64(h.ICMPType)
	k.way |= uint64(dir) * dirIn
	return k
}

// unify makes a flow's key that of the packet's unified flow: everything of a packet that
// a rule or flow can look at. What is not in it, a tunnel's inside and the fragment
// offset, sends a packet through the layers. TCP flags are not in it because they only
// decide whether a flow is made: with a flow they do not matter, and a refusal is not
// remembered.
func (k *key) unify(p *packet.Packet) {
	k.ports |= uint64(p.Headers().ICMPID) << 16
	k.way |= binary.BigEndian.Uint64(p.Bytes()) &^ 0xffff
}

// equals reports whether two keys are the same. The compiler would compare them in a function
// for memory of any length.
func (k *key) equals(o *key) bool {
	return (k.src[1]^o.src[1])|(k.dst[1]^o.dst[1])|(k.ports^o.ports)|(k.way^o.way)|(k.src[0]^o.src[0])|(k.dst[0]^o.dst[0]) == 0
}

func (k *key) srcPort() uint16     { return uint16(k.ports >> 48) }
func (k *key) dstPort() uint16     { return uint16(k.ports >> 32) }
func (k *key) proto() packet.Proto { return packet.Proto(k.ports >> 8) }
func (k *key) dir() Direction      { return Direction(k.way & dirIn) }

// setDstPort changes the destination port.
func (k *key) setDstPort(port uint16) { k.ports = k.ports&^(0xffff<<32) | uint64(port)<<32 }

// reversed is the key of the packets of the other direction that come in a direction.
func (k *key) reversed(dir Direction) key {
	r := key{src: k.dst, dst: k.src, way: k.way&^dirIn | uint64(dir)*dirIn}
	p := k.ports
	if k.proto() == packet.ICMP || k.proto() == packet.ICMPv6 {
		p = p&^0xff | uint64(packet.Tuple{Proto: k.proto(), ICMPType: uint8(p)}.Reverse().ICMPType)
	}
	r.ports = p<<16&(0xffff<<48) | p>>16&(0xffff<<32) | p&0xffffffff
	return r
}

// tuple is what the key says of packets.
func (k *key) tuple() packet.Tuple {
	return packet.Tuple{Src: k.source(), Dst: k.destination(), SrcPort: k.srcPort(), DstPort: k.dstPort(),
		Proto: k.proto(), ICMPType: uint8(k.ports), ICMPID: uint16(k.ports >> 16)}
}

func (k *key) source() netip.Addr      { return addrOf(k.src, k.way&isV6 != 0) }
func (k *key) destination() netip.Addr { return addrOf(k.dst, k.way&isV6 != 0) }

func addrOf(a [2]uint64, v6 bool) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], a[0])
	binary.BigEndian.PutUint64(b[8:], a[1])
	if !v6 {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.AddrFrom16(b)
}

// hash is that of the key. Places of a table go by its last bits, buckets by its first.
func (k *key) hash() uint64 {
	x := k.ports*0x9e3779b97f4a7c15 ^ (k.src[1]<<32^k.dst[1])*0xbf58476d1ce4e5b9 ^ k.way*0x94d049bb133111eb
	if k.way&isV6 != 0 {
		x = (x^x>>31)*0x9e3779b97f4a7c15 ^ (k.src[0]^k.dst[0]*5)*0xbf58476d1ce4e5b9 ^ k.src[1]*0x94d049bb133111eb
	}
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return x ^ x>>32
}
