// Package components runs a Windows node's own programs, unmodified, against winlab's
// HNS: the CNI plugins and kube-proxy, built for Windows, under Wine.
//
// A [Host] is a Wine prefix that looks like one build, with the DLLs that lead to a
// [hcn.Service]. The nodes of that build share it; a [Node] is what each has of its
// own: its HNS, its adapters, its folder. What the programs do there are HNS objects.
// [Programs] finds and builds the pinned programs, [Pool] keeps hosts.
//
// The package must not know labs, and it has no rule about HNS objects or about
// what a plugin does: it starts programs as kubelet, container runtime and service
// manager do, and returns their output.
package components
