package host

import "github.com/winlab-dev/winlab/sim/trace/evidence"

var (
	factRoute = evidence.New("host.longest-prefix", evidence.Stated,
		"A stack sends by the route with the longest matching prefix, then the lowest metric.", "RFC 1812 section 5.2.4")
	factForward = evidence.New("host.forwarding", evidence.Stated,
		"A stack passes packets on for others only when forwarding is on (RRAS, Set-NetIPInterface -Forwarding, net.ipv4.ip_forward).",
		"RFC 1812 section 5.3", "Kubernetes 1.5 guide for Windows by L3 routing")
	factReversePath = evidence.NewParam("linux-reverse-path-filter", "host.reverse-path-filter", evidence.Stated,
		"With rp_filter 1 a Linux interface drops packets whose source is routed by another interface. Distributions differ in the setting.",
		"Linux kernel documentation, networking/ip-sysctl, rp_filter",
		"Linux kernel net/ipv4/fib_frontend.c (fib_validate_source), net/netfilter/nf_nat_core.c (nf_nat_packet)")
	questionReversePath = evidence.NewQuestion("linux-reverse-path-filter", factReversePath,
		evidence.Answer{Value: "off", Means: "rp_filter is loose or off (the kernel's default)"},
		evidence.Answer{Value: "strict", Means: "rp_filter is strict (the default of some distributions)"})
	factOwn = evidence.New("host.own-address-inside", evidence.Stated,
		"A Windows node's packet to its own address is handled inside its stack and never reaches the virtual switch, unless a route sends it there.",
		"Azure/azure-container-networking#1863")
	factOwnLinux = evidence.New("host.own-address-linux", evidence.Stated,
		"A Linux node's packet to its own address stays inside but passes the OUTPUT chain.", "Linux kernel documentation, netfilter")
	factClosed = evidence.New("host.closed-port", evidence.Stated,
		"A stack answers a TCP SYN to a closed port with a reset and a UDP datagram with an ICMP port unreachable.", "RFC 9293 section 3.5.2",
		"RFC 1122 section 4.1.3.1")
	factToMany = evidence.New("host.multicast-not-answered", evidence.Stated,
		"A packet to a multicast address is never answered with an ICMP error or a reset.", "RFC 1122 section 3.2.2", "RFC 9293 section 3.9.2.3")
	factFirewall = evidence.NewParam("windows-firewall", "host.windows-firewall-stealth", evidence.Stated,
		"While the Windows firewall is on, its stealth mode sends no reset and no ICMP unreachable for a port on which no program listens. Nodes differ: many guides turn the firewall off, and whether it applies in a container's compartment is not documented.",
		"Microsoft support article 2586744, Disable stealth mode",
		"Microsoft Learn dd448557, Stealth Mode in Windows Firewall with Advanced Security")
	questionFirewall = evidence.NewQuestion("windows-firewall", factFirewall,
		evidence.Answer{Value: "answers", Means: "the Windows firewall is off"},
		evidence.Answer{Value: "silent", Means: "the Windows firewall is on (its stealth mode does not answer)"})
	factChecksum = evidence.New("host.wrong-checksum", evidence.Stated,
		"A stack drops a segment whose TCP or UDP checksum is wrong, without an answer. NICs that offload checksums and do not know the tunnel leave wrong ones inside.",
		"RFC 9293 section 3.1", "flannel-io/flannel#1279", "rancher/rancher#33399")
	factFragment = evidence.New("host.reassembly", evidence.Stated,
		"A stack hands a datagram to its program when all fragments of it are there. The simulation puts together what it has cut itself, or what programs of a live network have sent: what becomes of a fragment of a capture is unknown.",
		"RFC 1122 section 3.3.2", "RFC 791 section 3.2")
	factSocket = evidence.New("host.socket-match", evidence.Stated,
		"A program gets only packets that come from the address and port it wrote to; for others the stack resets or drops.",
		"RFC 9293 section 3.5.2")
	factICMPError = evidence.New("host.icmp-error-match", evidence.Stated,
		"A stack hands an ICMP error to the socket whose packet it quotes. Netfilter translates the quote with the connection; VFP translates no ICMP, so behind a translation a Windows socket does not know the quoted packet.",
		"RFC 1122 section 3.2.2", "Linux kernel documentation, netfilter (RELATED)",
		"Kubernetes documentation, Intro to Windows support: VFP cannot transpose ICMP")
	factEcho    = evidence.New("host.echo", evidence.Stated, "A stack answers an echo request.", "RFC 792")
	factProgram = evidence.New("host.program", evidence.Stated, "A program that listens answers.", "the lab")
	factProxy   = evidence.New("host.userspace-proxy", evidence.Code,
		"The user-space kube-proxy ends the client's connection and opens one of its own to a backend, so the backend sees the node.",
		"kubernetes/kubernetes v1.20 pkg/proxy/winuserspace/proxysocket.go")
	factMasquerade = evidence.New("host.netfilter-nat", evidence.Stated,
		"Netfilter translates the first packet of a connection by its rules and all others, replies included, by the connection's entry.",
		"Linux kernel documentation, netfilter NAT")
	factConntrackTimeouts = evidence.New("host.conntrack-timeouts", evidence.Stated,
		"Netfilter forgets a connection on which nothing was sent: established TCP after 5 days, TCP that opens or closes after 2 min, after 1 min where one end has closed and the other acknowledged that, after 30 s where both have closed and one is not acknowledged, after a reset after 10 s; UDP after 30 s, or 2 min when it was answered; echo requests after 30 s. A segment in the middle of a connection that is not known begins one.",
		"Linux kernel documentation, networking/nf_conntrack-sysctl",
		"Linux kernel net/netfilter/nf_conntrack_proto_tcp.c (tcp_timeouts, tcp_conntracks)")
	factWinNATTimeouts = evidence.New("host.winnat-timeouts", evidence.Stated,
		"WinNAT forgets a connection on which nothing was sent: established TCP after 30 min, TCP that opens or closes after 2 min, UDP after 2 min, echo requests after 30 s (TcpEstablishedConnectionTimeout 1800, TcpTransientConnectionTimeout 120, UdpIdleSessionTimeout 120, IcmpQueryTimeout 30); Set-NetNat sets others, in seconds.",
		"Microsoft documentation, Set-NetNat", "MicrosoftDocs/Virtualization-Documentation (New-NetNat and what it prints)")
	factRouterTimeouts = evidence.New("host.router-nat-timeouts", evidence.Inferred,
		"How long a router keeps an idle connection depends on it: at least 2 h 4 min by the standard, 4 min at some clouds.",
		"RFC 5382 section 5", "RFC 4787 section 4.3", "RFC 5508 section 3.2", "Microsoft Learn, Load Balancer TCP reset and idle timeout")
	factWinNAT = evidence.New("host.winnat", evidence.Stated,
		"WinNAT translates TCP, UDP and ICMP echo from its internal prefix to the host's address.",
		"Microsoft documentation, New-NetNat and Windows container networking, NAT")
)
