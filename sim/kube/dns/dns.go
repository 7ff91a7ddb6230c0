// Package dns models name resolution in a cluster: what the resolvers of
// Windows and Linux ask ([Client]), and what the cluster's name server answers
// ([Cluster]).
//
// Questions and answers are real DNS messages, so a lab can put them in UDP
// datagrams and send them through its simulated network. The package opens no
// sockets, and it must not know labs, HNS or the types of the Kubernetes API: a
// caller sets what differs between builds and releases in the fields of Client
// and Cluster.
package dns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Exchange sends one query datagram to a server's port 53 and returns what came back.
type Exchange func(server netip.Addr, query []byte) Reply

// Reply is what came back.
type Reply struct {
	// Answer are the bytes of the answer, nil when none came.
	Answer []byte
	// Path is the path that the query took, nil when it was not recorded.
	Path *trace.Path
	// Forwarded are the questions that the server itself asked on behalf of this one.
	Forwarded []trace.Query
}

// Tool is a program that resolves names. Programs on one Windows machine differ.
type Tool string

// The tools.
const (
	// ResolveDNSName is PowerShell's cmdlet; it asks the DNS client service.
	ResolveDNSName Tool = "Resolve-DnsName"
	// Nslookup brings its own resolver.
	Nslookup Tool = "nslookup"
	// Ping is any program that calls getaddrinfo: ping, curl, wget.
	Ping Tool = "ping"
	// Linux is a program on Linux that calls getaddrinfo of glibc.
	Linux Tool = "linux"
)

// Values of answers.
const (
	failureEnds  = "ends"
	suffixesUsed = "used"
)

// Tools lists every tool, the one to prefer on Windows first.
var Tools = []Tool{ResolveDNSName, Nslookup, Ping, Linux}

// Sources that several facts cite.
const (
	srcK8sIntro = "kubernetes/website content/en/docs/setup/production-environment/windows/intro-windows-in-kubernetes.md (1.20), DNS limitations"
	srcSuffix   = "kubernetes/kubernetes#65016"
	srcPolicy   = "Windows policy DNSClient.admx, DNS_AppendToMultiLabelName"
	srcList     = "Windows policy DNSClient.admx, DNS_SearchList"
	srcWhite    = "Windows 2000 DNS white paper, name resolution"
	srcNslookup = "Microsoft command reference, nslookup set search and set defname"
	srcSpec     = "kubernetes/dns docs/specification.md"
	srcGlibc    = "glibc resolv/res_query.c"
	srcPlugin   = "coredns/coredns plugin/kubernetes/README.md"
)

// What the resolvers do. A query that a rule caused cites the rule.
var (
	factDotted = evidence.New("dns.windows-dotted-is-qualified", evidence.Stated,
		"Windows treats a name with a dot as fully qualified: it is asked as written and no suffix is added.",
		srcK8sIntro, srcSuffix)
	factMultiLabel = evidence.New("dns.windows-append-to-multi-label", evidence.Stated,
		"Where the policy AppendToMultiLabelName is on, Windows adds the suffixes to a name with dots after the name as it stands has failed.",
		srcPolicy, srcWhite)
	factInterface = evidence.New("dns.windows-interface-suffix", evidence.Stated,
		"Windows completes a single label with the suffixes of the interface, which is where HNS puts an endpoint's DNSSuffix; a Windows pod has only that of its namespace.",
		srcK8sIntro, "containernetworking/plugins#229", "Azure/azure-container-networking#206")
	factGlobal = evidence.New("dns.windows-global-list", evidence.Stated,
		"A global suffix search list (Set-DnsClientGlobalSetting) replaces the suffixes of the interfaces.",
		srcList, srcSuffix)
	factSingle = evidence.New("dns.windows-no-bare-label", evidence.Stated,
		"The Windows DNS client does not ask a name server for a single label without a suffix (AllowUnqualifiedQuery is 0).",
		"Windows 2000 registry reference, AllowUnqualifiedQuery")
	factNslookup = evidence.NewParam("nslookup-interface-suffixes", "dns.nslookup-interface-suffixes", evidence.Stated,
		"Without a global suffix search list, nslookup in Windows containers was observed to ask a name as written and to ignore the suffixes of the interface; on other Windows machines it was observed to add them, even to names with dots.",
		"Azure/azure-container-networking#363", "containernetworking/plugins#229", srcSuffix,
		"isc.sans.edu diary 2024-05, D. Stevens: nslookup's debug options (DNS suffixes)")
	questionNslookup = evidence.NewQuestion("nslookup-interface-suffixes", factNslookup,
		evidence.Answer{Value: "ignored", Means: "nslookup reads only the global suffix list"},
		evidence.Answer{Value: suffixesUsed, Means: "nslookup adds the suffixes of the interface"})
	factNslookupDotted = evidence.New("dns.nslookup-completes-dotted", evidence.Stated,
		"nslookup also completes names with dots, as long as they do not end with one, where it adds suffixes at all.",
		srcSuffix, srcNslookup)
	factNslookupLast = evidence.New("dns.nslookup-as-is-last", evidence.Inferred,
		"nslookup asks the name as it stands after the suffixes of its list.", srcNslookup)
	factNslookupPTR = evidence.New("dns.nslookup-asks-server-name", evidence.Inferred,
		"nslookup first asks for the name of the server itself (PTR) and goes on whatever the answer is; it prints \"Server: UnKnown\" when there is none.",
		"microsoft/Windows-Containers#216")
	factReverse = evidence.New("dns.address-is-reversed", evidence.Inferred,
		"Resolve-DnsName and nslookup ask for the PTR record when they are given an address.",
		"Microsoft command reference, nslookup")
	factTrailingDot = evidence.New("dns.trailing-dot", evidence.Stated,
		"A name that ends with a dot is absolute: every resolver asks it as written and asks nothing else.",
		"RFC 1034 section 3.1", srcNslookup)
	factLinuxFirst = evidence.New("dns.linux-search-first", evidence.Code,
		"On Linux a name with fewer dots than ndots is tried with every suffix of the search list first, as it stands last.",
		srcGlibc+", __res_context_search")
	factLinuxAsIs = evidence.New("dns.linux-as-is-first", evidence.Code,
		"On Linux a name with at least ndots dots is tried as it stands first, then with the suffixes of the search list.",
		srcGlibc+", __res_context_search")
	factServers = evidence.New("dns.next-server", evidence.Inferred,
		"If a server does not answer, or reports a failure, the next one is asked; each is asked once, because repeating a query changes nothing in a model without loss.")
	factNextAfterFailure = evidence.NewParam("windows-dns-server-failure", "dns.windows-next-server-after-failure", evidence.Stated,
		"Whether Windows asks the next server after one has answered SERVFAIL is not consistent.",
		"moby/moby libnetwork/network_windows.go addEpToResolver", "moby/moby#46792")
	questionNextServer = evidence.NewQuestion("windows-dns-server-failure", factNextAfterFailure,
		evidence.Answer{Value: "next-server", Means: "Windows asks the next name server after one that failed"},
		evidence.Answer{Value: failureEnds, Means: "Windows does not ask another name server after one that failed"})
	factSuffixAfterFailure = evidence.NewParam("windows-dns-suffix-failure", "dns.windows-next-suffix-after-failure", evidence.Unknown,
		"Whether Windows goes on to the next suffix after SERVFAIL or REFUSED is not published; sources name only a negative answer as the trigger.",
		srcWhite)
	questionNextSuffix = evidence.NewQuestion("windows-dns-suffix-failure", factSuffixAfterFailure,
		evidence.Answer{Value: "next-suffix", Means: "Windows tries the next suffix after a failure of the server"},
		evidence.Answer{Value: failureEnds, Means: "Windows does not try another suffix after a failure of the server"})
	factConnection = evidence.New("dns.windows-connection-suffix-first", evidence.Stated,
		"The connection-specific suffix, which is where HNS puts an endpoint's Domain (DNSDomain in HNS v1), is tried before the suffixes of the interface's search list.",
		"microsoft/hcsshim#1047", "microsoft/Windows-Containers#59 (ipconfig shows it first in the search list)",
		"Windows policy DNSClient.admx, DNS_UseDomainNameDevolution")
	_ = evidence.New("dns.several-suffixes-order", evidence.Unknown,
		"Where an endpoint has several suffixes and no Domain, one node showed the last of them as the connection-specific suffix, first in its search list; whether that is so on every build is not known. They are tried as they were given.",
		"microsoft/Windows-Containers#59")
	_ = evidence.New("dns.default-servers", evidence.Stated,
		"HNS gives an endpoint without configured name servers those of the node.",
		"microsoft/hcsshim#2369", "microsoft/hcsshim#1940")
	_ = evidence.New("dns.docker-gateway", evidence.Code,
		"With EnableInternalDNS, which Docker sets on nat networks, a container's first name server is the gateway of its network, where dockerd listens and asks the endpoint's other servers for what it does not know.",
		"moby/moby libnetwork/network_windows.go startResolver, addEpToResolver", "moby/libnetwork#1412")
	_ = evidence.New("dns.docker-names", evidence.Inferred,
		"The names of other containers, which dockerd's resolver knows, are not modelled: it asks other servers for every name.",
		"moby/libnetwork#1412")
	_ = evidence.New("dns.node-servers", evidence.Stated,
		"Nodes and containers in the node's network do not ask the cluster DNS but the node's own name servers, those that CoreDNS forwards to with /etc/resolv.conf.",
		"kubernetes.io concepts/services-networking/dns-pod-service.md (Default; ClusterFirstWithHostNet is not supported on Windows)",
		"kubernetes.io tasks/administer-cluster/dns-custom-nameservers.md, CoreDNS ConfigMap options")
	factLinuxTimeout = evidence.New("dns.linux-timeout-ends-search", evidence.Code,
		"On Linux a time-out or a refusal with a suffix ends the search; SERVFAIL does not. The name as it stands is still tried.",
		srcGlibc+", __res_context_search")
	factTimeout = evidence.New("dns.windows-timeout-ends", evidence.Stated,
		"On Windows a time-out of all servers ends the look-up; only a negative answer leads to the next suffix.",
		srcWhite)
)

// What the cluster's name server does.
var (
	_ = evidence.New("dns.cluster-records", evidence.Stated,
		"The cluster's name server has the records of the specification: A, AAAA and SRV of Services, the addresses of ready endpoints of headless Services, CNAME for ExternalName, PTR, and the version.",
		srcSpec)
	_ = evidence.New("dns.cluster-pod-records", evidence.Stated,
		"With pod records on, a-b-c-d.NAMESPACE.pod.DOMAIN answers a.b.c.d for any address, as long as the namespace exists.",
		srcSpec+" section 2.6", srcPlugin+", pods insecure")
	_ = evidence.New("dns.outside-is-the-lab", evidence.Inferred,
		"A name outside of the cluster domain exists only if the lab lists it, for the cluster DNS or for a host that is a name server; the name servers of the world are not modelled.")
	factForward = evidence.New("dns.forward-longest-zone", evidence.Code,
		"CoreDNS asks the servers of the longest forwarded zone that a name is in, and only for names that neither its own domain nor its hosts have; it passes on their REFUSED, SERVFAIL or NXDOMAIN unchanged.",
		"coredns/coredns plugin/forward/forward.go ServeDNS", "coredns/coredns plugin.cfg (order: hosts, kubernetes, forward)",
		"coredns/coredns plugin/hosts/README.md, fallthrough")
	_ = evidence.New("dns.forward-servfail", evidence.Code,
		"If a server does not answer within 2 seconds, the next one is asked; when none answers, the client gets SERVFAIL.",
		"coredns/coredns plugin/forward/forward.go ServeDNS", "coredns/coredns plugin/forward/README.md, read_timeout")
	_ = evidence.New("dns.forward-order", evidence.Inferred,
		"Servers of a forwarded zone are asked in the order of the lab; CoreDNS's own choice is random, which changes an outcome only where they know different names.",
		"coredns/coredns plugin/forward/README.md, policy")
	_ = evidence.New("dns.external-name", evidence.Code,
		"For an ExternalName, CoreDNS looks up the target itself. One outside of its domain is answered with the alias and what was found, NOERROR also when that is nothing; one inside of it that does not exist is answered without any record.",
		"coredns/coredns plugin/backend_lookup.go A, AAAA", "coredns/coredns plugin/kubernetes/handler.go ServeDNS")
	_ = evidence.New("dns.outside-zone-refused", evidence.Inferred,
		"A name server with zones of its own answers REFUSED for a name outside of them; one without is a resolver and answers for every name.",
		"RFC 1035 section 4.1.1, RCODE 5", "RFC 8499 section 6, authoritative-only server")
)
