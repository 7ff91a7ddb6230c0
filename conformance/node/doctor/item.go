package doctor

import (
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/findings"
)

// Item is one entry of the troubleshooting chapters.
type Item struct {
	// id is stable, Title says in words what it is about.
	id, Title string
	// Claim is the ledger's claim with symptom and cure.
	Claim  string
	Causes []Cause
	// explains is set for entries that explain and have nothing to find.
	explains string
}

// Cause is one thing that can be found.
type Cause struct {
	// id is stable; checks of the ledger and JSON use it.
	ID string
	// says is what was found when it is found, in words, for the documentation.
	says string
	// Claim is set where the cause has a claim of its own.
	Claim string
	// Level is the level unless the evidence has another one, Effect one of
	// claims.Effects.
	Level  findings.Level
	Effect string

	look func(*nodeFacts) look
}

// look is the outcome of looking for one cause. All of it may be empty: then
// the item does not concern the node.
type look struct {
	hits []hit
	// healthy says what was in order, lacks what the folder does not have and
	// how to take it.
	healthy, lacks string
}

// hit is one place where a cause was found.
type hit struct {
	// says is what was found; evidence, never empty, where.
	says     string
	evidence []observed.Place
	// write and level replace those of the claim and of the cause.
	write   string
	level   findings.Level
	subject string
}

func found(says string, evidence ...observed.Place) look {
	return look{hits: []hit{{says: says, evidence: evidence}}}
}

func healthy(says string) look { return look{healthy: says} }

func lacks(says string) look { return look{lacks: says} }

// Items are the entries in the order of the chapters of Kubernetes 1.14 to
// 1.20, and the one that newer editions added; forwarding, NAT, ranges of ports and rules
// of VFP are from the documents and scripts that their claims name.
func Items() []Item {
	return []Item{
		{id: "start", Title: "Do the components run, and is the node Ready?", Claim: "trouble-start", Causes: []Cause{
			{ID: "process-missing", says: "kubelet, kube-proxy or flanneld does not run", Level: "error", Effect: "fails", look: processMissing},
			{ID: "node-not-ready", says: "the cluster does not have the node as Ready", Level: "error", Effect: "fails", look: nodeNotReady},
		}},
		{id: "services", Title: "Are the components services?", Claim: "trouble-services", Causes: []Cause{
			{ID: "service-stopped", says: "a component's service is registered and does not run", Level: "error", Effect: "fails",
				look: serviceStopped},
			{ID: "not-a-service", says: "a component runs, but nothing starts it again", Level: "info", Effect: "risk", look: notAService},
		}},
		{id: "mac-spoofing", Title: "Does the hypervisor let the pods' frames pass?", Claim: "trouble-mac-spoofing", Causes: []Cause{
			{ID: "mac-spoofing-off", says: "an adapter of the virtual machine has MAC address spoofing off", Level: "warning", Effect: "fails",
				look: macSpoofing},
		}},
		{id: "outside", Title: "Do pods reach what is outside?", Claim: "trouble-ping", Causes: []Cause{
			{ID: "ping-outside", says: "a pod's ping outside had no answer, which says nothing about TCP and UDP", Level: "info",
				Effect: "unsupported", look: pingOutside},
			{ID: "exception-covers-destination", says: "the ExceptionList has the destination, so its packets keep the pod's address",
				Claim: "trouble-exceptions", Level: "error", Effect: "fails", look: exceptionCovers},
			{ID: "exception-misses-range", says: "the ExceptionList misses a range of the cluster", Claim: "trouble-exceptions", Level: "warning",
				Effect: "different", look: exceptionMisses},
			{ID: "exception-of-old-endpoint", says: "an endpoint still has another ExceptionList than the file", Claim: "trouble-exceptions",
				Level: "warning", Effect: "different", look: exceptionOld},
		}},
		{id: "forwarding", Title: "Does the node pass packets on for its pods?", Claim: "trouble-forwarding", Causes: []Cause{
			{ID: "forwarding-off", says: "an interface that pods' packets pass does not forward", Level: "error", Effect: "fails",
				look: forwardingOff},
		}},
		{id: "nat", Title: "Are the addresses of containers translated?", Claim: "trouble-nat", Causes: []Cause{
			{ID: "nat-missing", says: "WinNAT has nothing for a nat network of HNS", Level: "error", Effect: "fails", look: natMissing},
			{ID: "outbound-nat-missing", says: "an endpoint has no OutBoundNAT policy, and the configuration asks for one", Level: "error",
				Effect: "fails", look: outboundNATMissing},
		}},
		{id: "port-ranges", Title: "Are there ports for HNS and for node ports?", Claim: "trouble-port-ranges", Causes: []Cause{
			{ID: "nodeport-excluded", says: "ports of the range of node ports are excluded", Level: "warning", Effect: "risk",
				look: nodePortExcluded},
			{ID: "dynamic-range-node-ports", says: "the dynamic ports overlap those of node ports", Level: "warning", Effect: "risk",
				look: dynamicNodePorts},
			{ID: "port-blocks-scarce", says: "few blocks of 64 dynamic ports are free", Level: "warning", Effect: "risk", look: portBlocksScarce},
		}},
		{id: "hns-errors", Title: "Did HNS refuse calls?", Claim: "trouble-hns-errors", Causes: []Cause{
			{ID: "hns-call-refused", says: "a log has a code with which HNS refused a call", Level: "warning", Effect: "fails", look: hnsRefused},
		}},
		{id: "vfp", Title: "Does VFP have the rules of HNS's objects?", Claim: "trouble-vfp", Causes: []Cause{
			{ID: "vfp-rule-stale", says: "a rule of VFP serves something that HNS no longer has", Level: "error", Effect: "fails",
				look: vfpRuleStale},
			{ID: "vfp-rule-missing", says: "a port of the switch misses the rule of a load balancer", Level: "error", Effect: "fails",
				look: vfpRuleMissing},
			{ID: "vfp-port-blocked", says: "a port of the switch is blocked", Level: "error", Effect: "fails", look: vfpPortBlocked},
		}},
		{id: "nodeport", Title: "NodePorts from the node itself", Claim: "trouble-nodeport", Causes: []Cause{
			{ID: "nodeport-from-node", says: "the node asked its own NodePort", Level: "info", Effect: "unsupported", look: nodePortFromNode},
		}},
		{id: "endpoints-vanish", Title: "Does kube-proxy know which node it is on?", Claim: "trouble-endpoints-vanish", Causes: []Cause{
			{ID: "hostname-override-missing", says: "kube-proxy has no --hostname-override", Level: "warning", Effect: "risk",
				look: overrideMissing},
			{ID: "hostname-override-other", says: "kube-proxy's --hostname-override is not the node's name", Level: "error", Effect: "fails",
				look: overrideOther},
		}},
		{id: "rejoin", Title: "Is the source VIP from the node's subnet?", Claim: "trouble-rejoin", Causes: []Cause{
			{ID: "source-vip-stale", says: "the source VIP is from another subnet than the node's", Level: "error", Effect: "fails",
				look: sourceVIPStale},
		}},
		{id: "flanneld-waits", Title: "Did flanneld create its network?", Claim: "trouble-flanneld-waits", Causes: []Cause{
			{ID: "network-never-created", says: "the start waits for a network that flanneld did not create", Level: "error", Effect: "fails",
				look: flanneldWaits},
		}},
		{id: "subnet-env", Title: "Is subnet.env there, with a subnet of its own?", Claim: "trouble-subnet-env", Causes: []Cause{
			{ID: "subnet-env-missing", says: "the flannel plugin does not find subnet.env", Level: "error", Effect: "fails", look: subnetEnvMissing},
			{ID: "subnet-env-duplicate", says: "FLANNEL_SUBNET is another node's subnet", Level: "error", Effect: "fails", look: subnetEnvDuplicate},
		}},
		{id: "service-ip", Title: "Service addresses from the node", Claim: "trouble-service-ip", Causes: []Cause{
			{ID: "service-ip-from-node", says: "the node asked a Service's address", Level: "info", Effect: "unsupported", look: serviceFromNode},
		}},
		{id: "no-adapter", Title: "Does the node have a network and an adapter for pods?", Claim: "trouble-no-adapter", Causes: []Cause{
			{ID: "no-hns-network", says: "HNS has no network for pods", Level: "error", Effect: "fails", look: noNetwork},
			{ID: "no-vethernet", says: "no adapter is called vEthernet (...)", Level: "error", Effect: "fails", look: noVEthernet},
			{ID: "interface-name", says: "start.ps1 looks for an adapter of another name", Level: "error", Effect: "fails", look: interfaceName},
		}},
		{id: "proxy-network", Title: "Are the pods on kube-proxy's network?", Claim: "trouble-proxy-network", Causes: []Cause{
			{ID: "pods-on-other-network", says: "pods are on another HNS network than the one that kube-proxy uses", Level: "error", Effect: "fails",
				look: otherNetwork},
		}},
		{id: "cni-configuration", Title: "Are the ranges of the CNI configuration ranges?", Claim: "trouble-cni-configuration", Causes: []Cause{
			{ID: "cni-configuration", says: "the CNI configuration has a value that its plugin cannot use", Level: "error", Effect: "fails",
				look: cniConfiguration},
			{ID: "hns-request-range", says: "HNS was given something that is not a range of addresses", Level: "error", Effect: "fails",
				look: requestRange},
		}},
		{id: "plugin-parts", Title: "Do the network plugin's own parts run?", Claim: "trouble-plugin-parts", Causes: []Cause{
			{ID: "plugin-service-stopped", says: "a service of the network plugin is registered and does not run", Level: "error", Effect: "fails",
				look: pluginServices},
			{ID: "ovs-extension-off", says: "the extension of Open vSwitch is not enabled on the switch of the pods", Level: "error",
				Effect: "fails", look: ovsExtension},
		}},
		{id: "pause-image", Title: "Does the pause image fit the host?", Claim: "trouble-pause-image", Causes: []Cause{
			{ID: "pause-image-build", says: "the pause image is for another build of Windows", Level: "error", Effect: "fails", look: pauseImage},
		}},
		{id: "dns", Title: "Names that Windows does not complete", Claim: "trouble-dns", Causes: []Cause{
			{ID: "dns-dotted-name", says: "a name with a dot is taken as complete", Level: "info", Effect: "different", look: dottedName},
		}},
		{id: "port-forward", Title: "Is wincat in the pause image?", Claim: "trouble-wincat", Causes: []Cause{
			{ID: "wincat-missing", says: "the pause image has no wincat", Level: "error", Effect: "fails", look: wincatMissing},
		}},
		{id: "proxy", Title: "Does the node know its proxy?", Claim: "trouble-proxy", Causes: []Cause{
			{ID: "proxy-variables", says: "HTTP_PROXY and HTTPS_PROXY are not both defined", Level: "warning", Effect: "fails",
				look: proxyVariables},
		}},
		{id: "pause-container", Title: "What is a pause container?", Claim: "trouble-pause-explained",
			explains: "The pause container is the first one of a pod. It holds the pod's endpoint, so that the address and the ports stay when another container ends and starts again. It is normal that the runtime lists one more container for each pod than its manifest has."},
		{id: "image-pull", Title: "Is there an image for this host?", Claim: "trouble-image-pull", Causes: []Cause{
			{ID: "image-build", says: "the image has nothing for this build of Windows", Level: "error", Effect: "fails", look: imageBuild},
		}},
	}
}
