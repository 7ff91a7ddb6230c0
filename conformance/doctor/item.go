package doctor

import (
	"slices"

	"github.com/winlab-dev/winlab/conformance/nodedump"
)

// Item is one entry of the troubleshooting chapters.
type Item struct {
	// ID is stable, Title says in words what it is about.
	ID, Title string
	// Claim is the ledger's claim with symptom and cure.
	Claim  string
	Causes []Cause
	// Explains is set for entries that explain and have nothing to find.
	Explains string
}

// Cause is one thing that can be found.
type Cause struct {
	// ID is stable; checks of the ledger and JSON use it.
	ID string
	// Says is what was found when it is found, in words, for the documentation.
	Says string
	// Claim is set where the cause has a claim of its own.
	Claim string
	// Level is the level unless the evidence says otherwise, Effect one of
	// claims.Effects.
	Level, Effect string

	look func(*nodeFacts) look
}

// look is the outcome of looking for one cause. All of it may be empty: then
// the item does not concern the node.
type look struct {
	hits []hit
	// healthy says what was in order, lacks what was not there to look at and
	// how to take it.
	healthy, lacks string
}

// hit is one place where a cause was found.
type hit struct {
	// says is what was found; evidence, never empty, where.
	says     string
	evidence []nodedump.Place
	// write and level replace those of the claim and of the cause.
	write, level string
	subject      string
}

func found(says string, evidence ...nodedump.Place) look {
	return look{hits: []hit{{says: says, evidence: evidence}}}
}

func healthy(says string) look { return look{healthy: says} }

func lacks(says string) look { return look{lacks: says} }

// Items are the entries in the order of the chapters of Kubernetes 1.14 to
// 1.20, and the one that newer editions added.
func Items() []Item {
	return []Item{
		{ID: "start", Title: "Do the components run, and is the node Ready?", Claim: "trouble-start", Causes: []Cause{
			{ID: "process-missing", Says: "kubelet, kube-proxy or flanneld does not run", Level: "error", Effect: "fails", look: processMissing},
			{ID: "node-not-ready", Says: "the cluster does not have the node as Ready", Level: "error", Effect: "fails", look: nodeNotReady},
		}},
		{ID: "services", Title: "Are the components services?", Claim: "trouble-services", Causes: []Cause{
			{ID: "service-stopped", Says: "a component's service is registered and does not run", Level: "error", Effect: "fails", look: serviceStopped},
			{ID: "not-a-service", Says: "a component runs, but nothing starts it again", Level: "info", Effect: "risk", look: notAService},
		}},
		{ID: "mac-spoofing", Title: "Does the hypervisor let the pods' frames pass?", Claim: "trouble-mac-spoofing", Causes: []Cause{
			{ID: "mac-spoofing-off", Says: "an adapter of the virtual machine has MAC address spoofing off", Level: "warning", Effect: "fails", look: macSpoofing},
		}},
		{ID: "outside", Title: "Do pods reach what is outside?", Claim: "trouble-ping", Causes: []Cause{
			{ID: "ping-outside", Says: "a pod's ping outside had no answer, which says nothing about TCP and UDP", Level: "info", Effect: "unsupported", look: pingOutside},
			{ID: "exception-covers-destination", Says: "the ExceptionList has the destination, so its packets keep the pod's address", Claim: "trouble-exceptions", Level: "error", Effect: "fails", look: exceptionCovers},
			{ID: "exception-misses-range", Says: "the ExceptionList misses a range of the cluster", Claim: "trouble-exceptions", Level: "warning", Effect: "different", look: exceptionMisses},
			{ID: "exception-of-old-endpoint", Says: "an endpoint still has another ExceptionList than the file", Claim: "trouble-exceptions", Level: "warning", Effect: "different", look: exceptionOld},
		}},
		{ID: "nodeport", Title: "NodePorts from the node itself", Claim: "trouble-nodeport", Causes: []Cause{
			{ID: "nodeport-from-node", Says: "the node asked its own NodePort", Level: "info", Effect: "unsupported", look: nodePortFromNode},
		}},
		{ID: "endpoints-vanish", Title: "Does kube-proxy know which node it is on?", Claim: "trouble-endpoints-vanish", Causes: []Cause{
			{ID: "hostname-override-missing", Says: "kube-proxy has no --hostname-override", Level: "warning", Effect: "risk", look: overrideMissing},
			{ID: "hostname-override-other", Says: "kube-proxy's --hostname-override is not the node's name", Level: "error", Effect: "fails", look: overrideOther},
		}},
		{ID: "rejoin", Title: "Is the source VIP from the node's subnet?", Claim: "trouble-rejoin", Causes: []Cause{
			{ID: "source-vip-stale", Says: "the source VIP is from another subnet than the node's", Level: "error", Effect: "fails", look: sourceVIPStale},
		}},
		{ID: "flanneld-waits", Title: "Did flanneld create its network?", Claim: "trouble-flanneld-waits", Causes: []Cause{
			{ID: "network-never-created", Says: "the start waits for a network that flanneld did not create", Level: "error", Effect: "fails", look: flanneldWaits},
		}},
		{ID: "subnet-env", Title: "Is subnet.env there, with a subnet of its own?", Claim: "trouble-subnet-env", Causes: []Cause{
			{ID: "subnet-env-missing", Says: "the flannel plugin does not find subnet.env", Level: "error", Effect: "fails", look: subnetEnvMissing},
			{ID: "subnet-env-duplicate", Says: "FLANNEL_SUBNET is another node's subnet", Level: "error", Effect: "fails", look: subnetEnvDuplicate},
		}},
		{ID: "service-ip", Title: "Service addresses from the node", Claim: "trouble-service-ip", Causes: []Cause{
			{ID: "service-ip-from-node", Says: "the node asked a Service's address", Level: "info", Effect: "unsupported", look: serviceFromNode},
		}},
		{ID: "no-adapter", Title: "Does the node have a network and an adapter for pods?", Claim: "trouble-no-adapter", Causes: []Cause{
			{ID: "no-hns-network", Says: "HNS has no network for pods", Level: "error", Effect: "fails", look: noNetwork},
			{ID: "no-vethernet", Says: "no adapter is called vEthernet (...)", Level: "error", Effect: "fails", look: noVEthernet},
			{ID: "interface-name", Says: "start.ps1 looks for an adapter of another name", Level: "error", Effect: "fails", look: interfaceName},
		}},
		{ID: "pause-image", Title: "Does the pause image fit the host?", Claim: "trouble-pause-image", Causes: []Cause{
			{ID: "pause-image-build", Says: "the pause image is for another build of Windows", Level: "error", Effect: "fails", look: pauseImage},
		}},
		{ID: "dns", Title: "Names that Windows does not complete", Claim: "trouble-dns", Causes: []Cause{
			{ID: "dns-dotted-name", Says: "a name with a dot is taken as complete", Level: "info", Effect: "different", look: dottedName},
		}},
		{ID: "port-forward", Title: "Is wincat in the pause image?", Claim: "trouble-wincat", Causes: []Cause{
			{ID: "wincat-missing", Says: "the pause image has no wincat", Level: "error", Effect: "fails", look: wincatMissing},
		}},
		{ID: "proxy", Title: "Does the node know its proxy?", Claim: "trouble-proxy", Causes: []Cause{
			{ID: "proxy-variables", Says: "HTTP_PROXY and HTTPS_PROXY are not both defined", Level: "warning", Effect: "fails", look: proxyVariables},
		}},
		{ID: "pause-container", Title: "What is a pause container?", Claim: "trouble-pause-explained",
			Explains: "The pause container is the first one of a pod. It holds the pod's endpoint, so that the address and the ports stay when another container ends and starts again. It is normal that the runtime lists one more container for each pod than its manifest has."},
		{ID: "image-pull", Title: "Is there an image for this host?", Claim: "trouble-image-pull", Causes: []Cause{
			{ID: "image-build", Says: "the image has nothing for this build of Windows", Level: "error", Effect: "fails", look: imageBuild},
		}},
	}
}

// CauseIDs are the ids of all causes.
func CauseIDs() []string {
	var ids []string
	for _, i := range Items() {
		for _, c := range i.Causes {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
