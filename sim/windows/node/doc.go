// Package node is the Windows machine: its adapters, its IP stack, its HNS, the
// virtual switches that follow what HNS is told, and the compartments of
// containers.
//
// A node compiles its switch ports from HNS again whenever HNS has changed. The
// package must not know Services, plugins or lab files: whoever calls HNS decides
// what there is.
package node
