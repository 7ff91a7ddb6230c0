// Package components runs a Windows node's own programs, unmodified, against winlab's
// HNS: the CNI plugins and kube-proxy, built for Windows, under Wine.
//
// A [Node] is one Wine prefix that looks like the node's build, with the DLLs that
// lead to a [hcn.Service]. What the programs do there are HNS objects of that
// service. The package must know nothing of labs and hold no rule about HNS
// objects or about what a plugin does: it starts programs as a kubelet does, and
// hands back what they say.
package components
