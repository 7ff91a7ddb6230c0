// Package node is the Windows machine: its adapters, its IP stack, its HNS, the
// virtual switches that follow the objects of HNS, and the compartments of
// containers.
//
// A node compiles its switch ports from HNS again whenever HNS has changed. The
// package must not know Services, plugins or lab files: the callers of HNS decide
// which objects exist.
package node
