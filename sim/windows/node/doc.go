// Package node puts one machine together: its adapters, its IP stack and, on
// Windows, its HNS, virtual switches and container compartments.
//
// A Windows node recompiles its switch ports from HNS whenever HNS changes.
// The package knows machines and pods' compartments; it must not know Services,
// plugins or lab files.
package node
