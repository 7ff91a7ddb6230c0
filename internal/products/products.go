// Package products maps the names that people use to what the ledger knows by number: releases
// of Windows Server beside their builds, and distributions of Kubernetes beside the network
// plugin of their Windows nodes. It is data with sources, and must not know a claim's content.
package products

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Release is one release of Windows Server.
type Release struct {
	// Name is what people type: "2019", "1809", "20H2".
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	// Channel is LTSC (five years and more) or SAC (18 months).
	Channel string `yaml:"channel"`
	// Build is without a revision: "10.0.17763".
	Build string `yaml:"build"`
	// Claim is the id of the claim on which versions of Kubernetes have nodes with it.
	Claim string `yaml:"claim"`
}

// Hosted is a distribution of Kubernetes that has Windows nodes.
type Hosted struct {
	// Name is the short one, "AKS".
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	// Designs are names of labs with the same plugin in the same mode, none when there is no such lab.
	Designs []string `yaml:"designs"`
	Says    string   `yaml:"says"`
	Sources []Source `yaml:"sources"`
}

// Source is where something was read.
type Source struct {
	Doc string `yaml:"doc"`
	URL string `yaml:"url"`
}

type list struct {
	Releases       []Release `yaml:"releases"`
	ReleasesSource Source    `yaml:"releasesSource"`
	Hosted         []Hosted  `yaml:"hosted"`
}

//go:embed products.yaml
var data []byte

var read = sync.OnceValue(func() list {
	var l list
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&l); err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return l
})

// Releases are those that documents about Kubernetes name, oldest first. 2019 and 1809
// have one build and differ in their channel.
func Releases() []Release { return slices.Clone(read().Releases) }

// ReleasesSource is where names and builds of the releases were read.
func ReleasesSource() Source { return read().ReleasesSource }

// HostedKubernetes are the distributions of Kubernetes that are known here.
func HostedKubernetes() []Hosted { return slices.Clone(read().Hosted) }

// ReleaseNamed finds a release by a name that people use for it: "2019", "ltsc2019",
// "Windows Server 2019", "10.0.17763" (the LTSC release of that build).
func ReleaseNamed(s string) (Release, bool) {
	all := read().Releases
	name := strings.TrimSpace(strings.ToLower(s))
	for _, prefix := range []string{"windows server", "windows", "server", ", version", "version", "ltsc", "sac", "ws", "v"} {
		name = strings.TrimSpace(strings.TrimPrefix(name, prefix))
	}
	if i := slices.IndexFunc(all, func(r Release) bool { return strings.EqualFold(r.Name, name) }); i >= 0 {
		return all[i], true
	}
	var found []Release
	for _, r := range all {
		if name == r.Build || strings.HasPrefix(name, r.Build+".") {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b Release) int { return strings.Compare(a.Channel, b.Channel) })
	if len(found) > 0 {
		return found[0], true
	}
	return Release{}, false
}
