package kubeproxy

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// oldest and newest are the minor versions whose kernelspace proxy was read.
const oldest, newest = 14, 37

// changes is all that distinguishes the kernelspace proxies of two versions, bugs
// included, in the order in which they came: what each changed, and in which patch of
// each release branch it landed. The facts named in the comments say more and cite the
// source.
//
// To add a version, read pkg/proxy/winkernel against the patch before, and go.mod for
// the library (libraries, below); add a row with the first patch of every branch that
// has the change, and a field to behaviour; test it in that patch and in the one before.
// CHANGELOG/CHANGELOG-1.NN.md of kubernetes/kubernetes names the patch of most.
var changes = []change{
	{"1.14.1..1.14.10 1.15.0", func(b *behaviour) { b.wildcardVIP = false }}, // factWildcardVIP: nodePort equal to port is lost
	{"1.15.0..1.15.12", func(b *behaviour) {
		b.sourceVIPAtStart = false
		b.watchesNetwork = true // factNetworkChanged
		b.ingressDSR = true     // factIngress: load balancer addresses follow --enable-dsr
	}},
	{"1.15.0", func(b *behaviour) { b.preserve = true }},                     // factPreserve
	{"1.15.5 1.16.2 1.17.0", func(b *behaviour) { b.localRoutedVIP = true }}, // factNodePort
	{"1.18.0..1.18.20", func(b *behaviour) {
		b.nodeSource = true       // factNodeSource: a node's address as backend
		b.preserveNodePort = true // factPreserve: node ports, too
	}},
	{"1.19.0..1.19.16", func(b *behaviour) {
		b.nodeSourceOnCreation = false
		b.sharedReferences = true // kubeproxy.remote-endpoint-references
	}},
	{"1.19.0", func(b *behaviour) {
		b.affinity = true // factAffinity
		b.dualStack = dualStackByGate
	}},
	{"1.20.0", func(b *behaviour) { b.externalLocal = true }}, // factExternalLocal
	{"1.20.0..1.20.15", func(b *behaviour) { b.ingressDSR = false }},
	{"1.21.0", func(b *behaviour) { b.endpointSlices = true }},                                   // kubeproxy.backend-order
	{"1.21.6 1.22.0", func(b *behaviour) { b.dualStack = dualStackByBuild }},                     // kubeproxy.dual-stack
	{"1.21.9..1.21.14 1.22.6 1.23.2..1.23.8 1.24.0", func(b *behaviour) { b.skipsEmpty = true }}, // factEmptyLocal
	{"1.24.0", func(b *behaviour) { b.healthCheck = true }},                                      // factHealthCheck
	{"1.22.12 1.23.9 1.24.0..1.24.2", func(b *behaviour) {
		b.recognise = recogniseByCount
		b.lookup, b.firstAddress = lookupLast, true // kubeproxy.endpoint-lookup
		b.forgetsMade = true                        // kubeproxy.endpoint-made-twice
	}},
	{"1.24.0..1.24.2", func(b *behaviour) { b.leaksIngress = true }},               // factLeaksIngress
	{"1.24.7 1.25.3 1.26.0", func(b *behaviour) { b.leaksIngress = false }},        // PR 112837
	{"1.24.9 1.25.5 1.26.0", func(b *behaviour) { b.recognise = recogniseByHash }}, // PR 113521
	{"1.24.10 1.25.6 1.26.1 1.27.0", func(b *behaviour) { // PRs 113742 and 113776
		b.hashesUpper = true   // kubeproxy.id-case: load balancers of an earlier sync are not recognised
		b.vipExternalIP = true // factNodePort
		b.internalLocal = true // factClusterIP
		b.terminating = true   // factReady
		b.optimised = true     // kubeproxy.optimisation
		b.deletes = deleteBySourceVIP
		b.clusterIPDeletesByAll = true // factDeletedReused
		b.clusterIPNeedsAvailable = true
		b.forgetsMade = false // kubeproxy.endpoint-made-twice
	}},
	{"1.24.12 1.25.8 1.26.3 1.27.0", func(b *behaviour) { // PRs 115919 and 115503
		b.clusterIPNeedsAvailable = false
		b.firstAddress = false
	}},
	{"1.31.0", func(b *behaviour) {
		b.listsUpper = true
		b.deletes = deleteExact
		b.deletesLocal = true // kubeproxy.stale-remote-endpoints
		b.forgetsGone = true
		b.modifies = true // factUpdate
	}},
	{"1.31.9 1.32.5 1.33.1 1.34.0", func(b *behaviour) { // PR 131138
		b.lookup = lookupRemote // kubeproxy.endpoint-lookup
		b.deletesLocal = false
	}},
	{"1.34.0", func(b *behaviour) { b.lastTargetPort = true }},                                       // kubeproxy.target-port
	{"1.31.14 1.32.10 1.33.6 1.34.2 1.35.0", func(b *behaviour) { b.clusterIPDeletesByAll = false }}, // factDeletedReused, PR 133953
	{"1.32.10 1.33.6 1.34.2 1.35.0", func(b *behaviour) { b.forgetsGone = false }},                   // PR 135146; 1.31 has it to its end
	{"1.33.8 1.34.4 1.35.1 1.36.0", func(b *behaviour) { // PR 136241
		b.familyInHash = true // factIdentity
		b.vipsByFamily = true // kubeproxy.dual-stack
	}},
	{"1.34.8 1.35.5 1.36.1 1.37.0", func(b *behaviour) { b.lookup = lookupLocal }}, // kubeproxy.endpoint-lookup, PR 138000
	{"1.37.0", func(b *behaviour) { b.replaces = true }},                           // factReplaces
}

// libraries says which version of the HNS library each release was built with, from
// which on, and which versions of HNS it takes for ones that change load balancers in
// place (hcn/hcnglobals.go, ModifyLoadbalancerVersion). A later branch can begin with an
// older library than the last patches of the branch before.
var libraries = []library{
	{"1.14.0", "hcsshim of its time", modifyNever},
	{"1.31.0", "hcsshim 0.8.26", modifyFrom154},
	{"1.32.0", "hnslib 0.0.8", modifyFrom154},
	{"1.32.6", "hnslib 0.1.1", modifyOnly15},
	{"1.33.0", "hnslib 0.0.8", modifyFrom154},
	{"1.33.2", "hnslib 0.1.1", modifyOnly15},
	{"1.35.1", "hnslib 0.1.2", modifyFrom155},
	{"1.37.0", "hnslib 0.1.3", modifyFrom155},
}

// change is one change of behaviour. landed lists the first patch of each release
// branch that has it; "1.21.9..1.21.14" where the patches in between could not be read,
// the first of them cannot be excluded and the last has it. Later branches have it.
type change struct {
	landed string
	apply  func(*behaviour)
}

type library struct {
	since, name string
	modify      hnsRange
}

// span is one item of change.landed.
type span struct{ from, to kube.Version }

// spansOf has the spans of each text that was read: whoever builds a node asks for all of them.
var spansOf sync.Map // of string to []span

// spans reads change.landed. The text is the program's own, and a test reads it all.
func (c change) spans() []span {
	if all, ok := spansOf.Load(c.landed); ok {
		return all.([]span)
	}
	var all []span
	for item := range strings.FieldsSeq(c.landed) {
		from, to, found := strings.Cut(item, "..")
		if !found {
			to = from
		}
		all = append(all, span{mustVersion(from), mustVersion(to)})
	}
	spansOf.Store(c.landed, all)
	return all
}

func mustVersion(s string) kube.Version {
	v, err := kube.ParseVersion(s)
	if err != nil || v.Assumed {
		panic("kubeproxy: " + strconv.Quote(s) + " is not a version with a patch")
	}
	return v
}

// isIn says whether v has the change; unsure that the source of its patch, and of those
// around it, was not read.
func (c change) isIn(v kube.Version) (has, unsure bool) {
	for _, s := range c.spans() {
		if s.from.SameMinor(v) {
			return v.Compare(s.from) >= 0, v.Compare(s.from) >= 0 && v.Compare(s.to) < 0
		}
		has = v.Compare(s.to) > 0
	}
	return has, false
}

// libraryOf returns the library that a version was built with.
func libraryOf(v kube.Version) library {
	found := libraries[0]
	for _, l := range libraries {
		if mustVersion(l.since).Compare(v) <= 0 {
			found = l
		}
	}
	return found
}

// hnsRange is the versions of HNS that change load balancers in place, as the
// library knows them that kube-proxy was built with.
type hnsRange int

const (
	modifyNever   hnsRange = iota
	modifyFrom154          // 15.4 and later
	modifyOnly15           // 15.5 to the end of 15
	modifyFrom155          // 15.5 to the end of 15, 16.0 and later
)

func (r hnsRange) has(v builds.HNSVersion) bool {
	switch r {
	case modifyFrom154:
		return v.Compare(builds.HNSVersion{Major: 15, Minor: 4}) >= 0
	case modifyOnly15:
		return v.Major == 15 && v.Minor >= 5
	case modifyFrom155:
		return v.Major == 15 && v.Minor >= 5 || v.Major >= 16
	}
	return false
}

// NotRead says what is not certain about the kernelspace proxy of a version, because the
// source of its patch was not read (kubeproxy.versions); "" where nothing is.
func NotRead(v kube.Version) string {
	b, err := behaviourOf(v)
	switch {
	case err != nil:
		return ""
	case v.Newer():
		return fmt.Sprintf("it is newer than the newest patch known to winlab, %s, and is assumed to behave like that one",
			kube.Minor(v.Minor).Full())
	case b.unsure:
		return fmt.Sprintf(
			"its source was not read, and a patch of 1.%d changed what kube-proxy does: it is assumed to behave like %s where no changelog says otherwise", v.Minor, kube.Minor(v.Minor).Full())
	}
	return ""
}

// first is what 1.14.0 does.
var first = behaviour{
	wildcardVIP:          true, // factWildcardVIP: nodePort equal to port is lost
	sourceVIPAtStart:     true, // the source VIP's endpoint is made once
	nodeSourceOnCreation: true, // factNodeSource: in the sync that makes the remote endpoint
	lookup:               lookupFirst,
	recognise:            recogniseLive, // factIdentity: asks HNS each time
}

// behaviourOf adds up the changes to v.
func behaviourOf(v kube.Version) (behaviour, error) {
	if v.Major != 1 || v.Minor < oldest || v.Minor > newest {
		return behaviour{}, fmt.Errorf("kube-proxy %s: the source of its kernelspace mode was not read; known versions are 1.%d to 1.%d", v,
			oldest, newest)
	}
	b := first
	for _, c := range changes {
		if has, unsure := c.isIn(v); has {
			c.apply(&b)
			b.unsure = b.unsure || unsure
		}
	}
	if b.modifies {
		b.modify = libraryOf(v).modify
	}
	return b, nil
}
