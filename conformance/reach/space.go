package reach

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// space is what a cluster says of its machines from outside them: where else their names
// and addresses stand, and in which prefixes their addresses are.
type space struct {
	c *lab.Cluster
	// words are all strings of the plan but those of pods, and the words in them; otherWords
	// those that stand elsewhere than in NetworkPolicies.
	words, otherWords map[string]bool
	// at are the places of the plan at which a name, an address or a prefix stands.
	at map[any][]string
	// prefixes are those of the plan and of what was compiled, but of nodes: nodes have
	// their own, each with the names of nodes that have it.
	prefixes nets
	ofNodes  nets

	nodes map[string]*node
	pods  map[string]*pod // by "namespace/name"
	// names are those of nodes, pods and Services.
	names  map[string]bool
	owners map[netip.Addr]*pod
	// marked are the pods by the number of their mark.
	marked []*pod
	// called are the names of pods that share answers.
	called called
}

// node is a machine of the cluster with what tells it from others.
type node struct {
	*cluster.Machine
	text string
	// number is the same for nodes with the same text.
	number int
	// read are the strings of its endpoints whose prefixes are known.
	read map[string]bool
	// carries are the texts of its pods that take ports or the network of the node itself.
	carries []string
}

// pod is a pod with the number of its class so far.
type pod struct {
	plan    *plan.Pod
	machine *cluster.Machine // nil where it has no network
	on      *node
	addrs   []netip.Addr
	text    string
	class   int
	// mark is the number of its mark, 1 for the first; 0 for none.
	mark int
	// endpoint is what HNS says of it.
	endpoint endpoint
	// alone is what is said of it but for what NetworkPolicies make of it; "" where they act on
	// it by other things than ACLs of its endpoint.
	alone string
	// towards are its ACLs as flows with others meet them, see [space.share]; called are its names.
	towards *towards
	called  []int32
}

// endpoint is what HNS says of a pod's endpoint, its ACLs apart, with marks for other pods.
type endpoint struct {
	text string
	acls []string
	hns  *hns.Endpoint
}

// nets finds the prefixes that contain an address.
type nets struct {
	of   map[netip.Prefix]owned
	bits map[int]bool
}

// owned says who has a prefix: the first, and whether there are others.
type owned struct {
	first  string
	others bool
}

func (n *nets) add(p netip.Prefix, who string) {
	if !p.IsValid() || p.IsSingleIP() {
		return // a single address is found by itself
	}
	if n.of == nil {
		n.of, n.bits = map[netip.Prefix]owned{}, map[int]bool{}
	}
	p = p.Masked()
	switch of, ok := n.of[p]; {
	case !ok:
		n.of[p], n.bits[p.Bits()] = owned{first: who}, true
	case of.first != who && !of.others:
		n.of[p] = owned{of.first, true}
	}
}

// holding are the prefixes with an address, but those of own that only who has.
func (n *nets) holding(a netip.Addr, who string, own []netip.Prefix) []string {
	var all []string
	for _, b := range slices.Sorted(maps.Keys(n.bits)) {
		p, err := a.Prefix(b)
		if err != nil {
			continue
		}
		if of, ok := n.of[p]; ok && (of.others || of.first != who || !slices.Contains(own, p)) {
			all = append(all, p.String())
		}
	}
	return all
}

// decided are fields of a plan that say nothing of a cluster that is not elsewhere: the file
// that was read, what was counted while the plan was made, and what has no effect.
var decided = []string{"/File", "/Variant", "/Setting", "/macs", "/scheduled", "/given", "/NotModelled", "/Pods", "/Nodes", "/found"}

// newSpace reads a cluster.
func newSpace(c *lab.Cluster) *space {
	s := &space{c: c, words: map[string]bool{}, otherWords: map[string]bool{}, at: map[any][]string{}, nodes: map[string]*node{},
		pods: map[string]*pod{}, owners: map[netip.Addr]*pod{}, names: map[string]bool{}}
	for _, m := range c.Machines(cluster.NodeKind) {
		s.nodes[m.Name], s.names[m.Name] = &node{Machine: m, read: map[string]bool{}}, true
	}
	for _, p := range c.Plan.Pods {
		q := &pod{plan: p, on: s.nodes[p.Node], machine: c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: p.Key()})}
		s.pods[p.Key()], s.names[p.Name] = q, true
		if q.machine == nil || q.machine.Stack() == q.on.Stack() {
			continue
		}
		for _, l := range q.machine.Stack().Links {
			for _, a := range l.Addrs {
				q.addrs = append(q.addrs, a.Addr())
				s.owners[a.Addr()] = q
			}
		}
	}
	for _, v := range c.Kube.Services {
		s.names[v.Name] = true
	}
	s.read()
	return s
}

// read notes what the plan says.
func (s *space) read() {
	w := walk{skip: func(path []byte) bool { return slices.Contains(decided, string(path)) }}
	w.leaf = func(path []byte, v any) { s.mention(string(path), v, "", &s.prefixes) }
	w.visit(*s.c.Plan)
	for _, n := range s.c.Plan.Nodes {
		w.leaf = func(path []byte, v any) { s.mention("/Nodes/"+n.Kube.Name+string(path), v, n.Kube.Name, &s.ofNodes) }
		w.skip = func(path []byte) bool { return string(path) == "/Dump" } // such a node has no equal
		w.visit(*n)
	}
	for _, p := range s.pods {
		s.compiled(p, func(e *hns.Endpoint) {
			w := walk{leaf: func(_ []byte, v any) {
				if text, ok := v.(string); ok {
					if p.on.read[text] {
						return
					}
					p.on.read[text] = true
				}
				s.notePrefixes(v, p.plan.Node, &s.ofNodes)
			}}
			w.visit(*e)
		})
	}
}

// mention notes a value of the plan; own is the node that says it, "" for none.
func (s *space) mention(path string, v any, own string, in *nets) {
	s.notePrefixes(v, own, in)
	note := func(what any) {
		if all := s.at[what]; len(all) == 0 || all[len(all)-1] != path {
			s.at[what] = append(all, path)
		}
	}
	switch x := v.(type) {
	case netip.Addr:
		note(x)
	case netip.Prefix:
		s.notePrefix(x, note)
	case string:
		other := !strings.HasPrefix(path, "/Policies/")
		said := func(word string) {
			if s.words[word] = true; other {
				s.otherWords[word] = true
			}
		}
		said(x)
		for word := range strings.FieldsFuncSeq(x, func(r rune) bool { return r > 127 || !inWord(byte(r)) }) {
			said(word)
			for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == '/' || r == '_' || r == ':' }) {
				if part != own && s.names[part] {
					note(part)
				}
			}
			if a, err := netip.ParseAddr(word); err == nil {
				note(a)
			} else if p, err := netip.ParsePrefix(word); err == nil {
				s.notePrefix(p, note)
			}
		}
	}
}

// notePrefix notes a prefix, and the address of one that names an address in its network.
func (s *space) notePrefix(p netip.Prefix, note func(any)) {
	if note(p); p != p.Masked() || p.IsSingleIP() {
		note(p.Addr())
	}
}

// notePrefixes notes the prefixes of a value, and what lies between two addresses.
func (s *space) notePrefixes(v any, own string, in *nets) {
	switch x := v.(type) {
	case netip.Prefix:
		in.add(x, own)
	case string:
		if !strings.ContainsAny(x, "/-") || !strings.ContainsAny(x, ".:") {
			return
		}
		for word := range strings.FieldsFuncSeq(x, func(r rune) bool { return r > 127 || !inWord(byte(r)) }) {
			if p, err := netip.ParsePrefix(word); err == nil {
				in.add(p, own)
			}
		}
	}
}

// compiled calls f with the endpoint that a pod's plugin made. Nothing that waits on the
// node is done for it.
func (s *space) compiled(p *pod, f func(*hns.Endpoint)) {
	if p.machine == nil || p.machine.Endpoint == "" || p.on.Node.HNS == nil {
		return
	}
	h := p.on.Node.HNS
	h.AsIs(func() {
		if e := h.Endpoint(p.machine.Endpoint); e != nil {
			f(e)
		}
	})
}

// describe writes the texts of nodes and pods, and numbers the classes of pods: two are in
// one class when all that the plan and HNS say of them is the same, once each one's own
// name, addresses and node have the same words in both.
func (s *space) describe() {
	sharing := s.sharing()
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[key]
		plain := s.podText(p)
		text := plain + labelsText(p, s.words)
		p.text = digest(text)
		if sharing && s.owns(p) && s.c.PoliciesInACLs(cluster.Ref{Kind: cluster.PodKind, Name: key}) {
			p.alone = plain + labelsText(p, s.otherWords)
		}
		if p.plan.HostNetwork || len(p.plan.HostPorts) > 0 {
			p.on.carries = append(p.on.carries, text)
		}
	}
	numbers := map[string]int{}
	for _, n := range s.c.Plan.Nodes {
		x := s.nodes[n.Kube.Name]
		x.text = digest(s.nodeText(n))
		if _, ok := numbers[x.text]; !ok {
			numbers[x.text] = len(numbers)
		}
		x.number = numbers[x.text]
	}
	// What HNS says of a pod names others, in rules of policies. Each is told by its class,
	// until that tells no more apart.
	plain := make(map[*pod]string, len(s.pods))
	for _, p := range s.pods {
		on := "\non " + strconv.Itoa(p.on.number)
		p.text = digest(p.text + on)
		plain[p] = p.text
		p.endpoint = s.endpointOf(p)
		if p.alone != "" {
			p.alone = digest(p.alone + on + s.raw(p.endpoint.text))
		}
	}
	for before := 0; ; {
		n := s.number()
		if n == before {
			return
		}
		before = n
		for _, p := range s.pods {
			p.text = digest(plain[p] + "\nclass " + strconv.Itoa(p.class) + "\n" + s.named(p.endpoint.text) +
				s.named(strings.Join(p.endpoint.acls, "")))
		}
	}
}

// owns reports whether a pod's addresses belong to it alone.
func (s *space) owns(p *pod) bool {
	return !slices.ContainsFunc(p.addrs, func(a netip.Addr) bool { return s.owners[a] != p })
}

// digest stands for a text that is only compared: those of 150,000 pods would fill the memory.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawStdEncoding.EncodeToString(sum[:]) // bytes of it could be a mark
}

// number numbers the texts of pods in the order of names, and returns how many there are.
func (s *space) number() int {
	numbers := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[key]
		if _, ok := numbers[p.text]; !ok {
			numbers[p.text] = len(numbers)
		}
		p.class = numbers[p.text]
	}
	return len(numbers)
}

// podText is what the plan says of a pod, without its node and its labels.
func (s *space) podText(p *pod) string {
	one := *p.plan
	own := names{words: map[string]string{one.Name: "(pod)", one.Node: "(node)"}, addr: func(a netip.Addr) string { return a.String() }}
	one.Name, one.Address, one.UID = "", netip.Addr{}, ""
	one.Labels = nil // see labelsText
	var b strings.Builder
	writeText(&b, &own, one)
	if p.machine == nil {
		if no, ok := s.c.WithoutNetwork(p.plan.Key()); ok {
			fmt.Fprintf(&b, "refused by %s: %s\n", no.Program, own.text(no.Text))
		}
		fmt.Fprintln(&b, "no network")
	}
	for _, at := range s.at[p.plan.Name] {
		fmt.Fprintln(&b, "named at", at)
	}
	s.around(&b, p.addrs, p.plan.Node)
	return b.String()
}

// labelsText are the labels of a pod by which something could tell it from another that says
// these words: one whose key stands nowhere is left out, and so is the value where only the key
// stands somewhere. The cluster DNS is found by labels that no plan has.
func labelsText(p *pod, words map[string]bool) string {
	all := map[string]string{}
	for k, v := range p.plan.Labels {
		switch {
		case p.plan.ServesDNS():
			all[k] = v
		case words[k] && words[v]:
			all[k] = v
		case words[k]:
			all[k] = "(a value that stands nowhere)"
		}
	}
	return fmt.Sprintf("labels %q\n", all) // in the order of the keys
}

// around says in which prefixes addresses are, and where the plan has them.
func (s *space) around(b *strings.Builder, addrs []netip.Addr, on string) {
	var own []netip.Prefix
	if n := s.nodes[on]; n != nil {
		own = n.Node.PodCIDRs
	}
	for i, a := range addrs {
		fmt.Fprintln(b, "address", i, a.Is6(), s.prefixes.holding(a, "", nil), s.ofNodes.holding(a, on, own))
		for _, at := range s.at[a] {
			if !strings.HasPrefix(at, "/Nodes/"+on+"/") {
				fmt.Fprintln(b, "address at", at)
			}
		}
	}
}

// writeText writes all leaves of a value, each with its path.
func writeText(b *strings.Builder, own *names, v any) {
	w := walk{leaf: func(path []byte, v any) {
		if said := own.leaf(v); said != "" {
			b.Write(path)
			b.WriteByte('=')
			b.WriteString(said)
			b.WriteByte('\n')
		}
	}}
	w.visit(v)
}

// nodeText is what the plan says of a node.
func (s *space) nodeText(n *plan.Node) string {
	x := s.nodes[n.Kube.Name]
	if n.Dump != nil {
		return "a dump of " + n.Kube.Name // it belongs to one node only
	}
	addrs := slices.DeleteFunc([]netip.Addr{n.Kube.Address, n.Kube.Address6}, func(a netip.Addr) bool { return !a.IsValid() })
	own := names{words: nodeWords(n), prefixes: nodePrefixes(n), addr: func(a netip.Addr) string { return nodeAddr(n, a) }}
	var b strings.Builder
	writeText(&b, &own, *n)
	for _, at := range s.at[n.Kube.Name] {
		fmt.Fprintln(&b, "named at", at)
	}
	for i, p := range n.Kube.PodCIDRs {
		for _, at := range s.at[p] {
			if !strings.HasPrefix(at, "/Nodes/"+n.Kube.Name+"/") {
				fmt.Fprintln(&b, "prefix", i, "at", at)
			}
		}
		addrs = append(addrs, p.Addr())
	}
	s.around(&b, addrs, n.Kube.Name)
	slices.Sort(x.carries)
	for _, c := range x.carries {
		b.WriteString("carries " + c)
	}
	return b.String()
}

func nodeWords(n *plan.Node) map[string]string {
	words := map[string]string{n.Kube.Name: "(node)"}
	for what, m := range map[string]packet.MAC{"(node's MAC)": n.Kube.MAC, "(VTEP's MAC)": n.Kube.VtepMAC, "(second MAC)": n.PodNIC} {
		if m != (packet.MAC{}) {
			addMAC(words, what, m)
		}
	}
	return words
}

// addMAC adds the forms in which HNS and the plan write a MAC address.
func addMAC(words map[string]string, what string, m packet.MAC) {
	text := hex.EncodeToString(m[:])
	words[text] = what
	var parts []string
	for i := 0; i < len(text); i += 2 {
		parts = append(parts, text[i:i+2])
	}
	for _, sep := range []string{"-", ":"} {
		words[strings.Join(parts, sep)] = what
		words[strings.ToUpper(strings.Join(parts, sep))] = what
	}
}

func nodePrefixes(n *plan.Node) map[netip.Prefix]string {
	all := map[netip.Prefix]string{}
	for i, p := range n.Kube.PodCIDRs {
		all[p] = "(pods of the node " + strconv.Itoa(i) + ")/" + strconv.Itoa(p.Bits())
	}
	return all
}

// nodeAddr names an address as a node sees it.
func nodeAddr(n *plan.Node, a netip.Addr) string {
	switch a {
	case n.Kube.Address:
		return "(node)"
	case n.Kube.Address6:
		return "(node, IPv6)"
	}
	for i, p := range n.Kube.PodCIDRs {
		if p.Contains(a) {
			return fmt.Sprintf("(pods of the node %d)+%d", i, offset(p.Addr(), a))
		}
	}
	return a.String()
}

// offset is how far an address is behind the first of its prefix, by its last four bytes.
func offset(first, a netip.Addr) int {
	x, y := first.AsSlice(), a.AsSlice()
	n := 0
	for i := len(x) - 4; i < len(x); i++ {
		n = n<<8 + int(y[i]) - int(x[i])
	}
	return n
}

// endpointOf is the endpoint that a pod's plugin made.
func (s *space) endpointOf(p *pod) (all endpoint) {
	s.compiled(p, func(e *hns.Endpoint) {
		own, one := s.ownNames(p, e), *e
		one.Policies = slices.DeleteFunc(slices.Clone(e.Policies), isACL)
		if nw := p.on.Node.HNS.Network(e.HostComputeNetwork); nw != nil && p.on.Node.Plan.Dump == nil {
			one.HostComputeNetwork = nw.Name
		}
		var b strings.Builder
		writeText(&b, own, one)
		if all.text = b.String(); !isMarked(all.text) {
			all.text = digest(all.text) // of most pods nothing is asked but whether it is the same
		}
		for i, x := range e.Policies {
			if isACL(x) { // where it stands among all policies counts
				b.Reset()
				fmt.Fprintln(&b, "ACL", i)
				writeText(&b, own, x)
				all.acls = append(all.acls, b.String())
			}
		}
		all.hns = e
	})
	return all
}

func isACL(p hns.Policy) bool { return p.Is(hns.PolicyACL) }

// ownNames are the names of a pod and its endpoint, with marks for other pods.
func (s *space) ownNames(p *pod, e *hns.Endpoint) *names {
	n := p.on.Node.Plan
	words := nodeWords(n)
	words[p.plan.Name], words[p.plan.Key()] = "(pod)", "(pod)"
	for what, id := range map[string]string{"(endpoint)": e.ID, "(namespace)": e.HostComputeNamespace} {
		for _, form := range []string{id, strings.ToLower(id), strings.ToUpper(id)} {
			words[form] = what
		}
	}
	delete(words, "")
	if m, err := packet.ParseMAC(e.MacAddress); err == nil {
		addMAC(words, "(pod's MAC)", m)
	}
	return &names{words: words, prefixes: nodePrefixes(n), addr: func(a netip.Addr) string {
		if i := slices.Index(p.addrs, a); i >= 0 {
			return fmt.Sprintf("(pod %d)", i)
		}
		if q := s.owners[a]; q != nil {
			return s.markOf(q, slices.Index(q.addrs, a))
		}
		return nodeAddr(n, a)
	}}
}

// service is what tells Services from each other, with their backends by class.
func (s *space) service(v *kube.Service) string {
	one := *v
	one.Name, one.Endpoints = "", nil
	own := names{words: map[string]string{v.Name: "(service)"}, addr: func(a netip.Addr) string {
		if i := slices.Index(v.ClusterIPs, a); i >= 0 {
			return fmt.Sprintf("(address %d)", i)
		}
		return a.String()
	}}
	var b strings.Builder
	writeText(&b, &own, one)
	s.around(&b, v.ClusterIPs, "")
	for _, at := range s.at[v.Name] {
		// A Service stands in the plan's own list, by its name.
		if !strings.HasPrefix(at, "/Services/") || !strings.HasSuffix(at, "/Name") {
			fmt.Fprintln(&b, "named at", at)
		}
	}
	var backends []string
	for _, e := range v.Endpoints {
		backends = append(backends, s.backend(e))
	}
	slices.Sort(backends)
	b.WriteString(strings.Join(backends, "\n"))
	return b.String()
}

// backend is what a Service knows of one of its endpoints.
func (s *space) backend(e kube.Endpoint) string {
	p := s.pods[e.Pod]
	text := fmt.Sprintf("backend %v %v %v %v", e.Ports, e.Ready, e.Serving, e.Terminating)
	if p == nil || !slices.Contains(p.addrs, e.Addr) {
		return text + " " + cmp.Or(e.Pod, e.Addr.String()) + " " + e.Addr.String() + " on " + e.Node
	}
	return fmt.Sprintf("%s class %d", text, p.class)
}
