package result

// Scope is a set of settings as the ledger writes it. An empty field holds everything,
// a list any of its entries; all fields that are set must fit.
type Scope struct {
	// Kubernetes is a range of versions, ">=1.14 <=1.20". Open is the same range without
	// an end where it ends only because the documents were not read any further.
	Kubernetes string `json:"kubernetes,omitempty"`
	Open       string `json:"open,omitempty"`
	// Build is a range of Windows builds with revision; a build without one counts as
	// fully patched. Releases are names of releases of Windows Server.
	Build    string   `json:"build,omitempty"`
	Releases []string `json:"releases,omitempty"`
	// Designs are names of designs, or globs.
	Designs       []string `json:"designs,omitempty"`
	Networks      []string `json:"networks,omitempty"`
	Plugins       []string `json:"plugins,omitempty"`
	PluginVersion string   `json:"pluginVersion,omitempty"`
	// Proxies are kernelspace, kernelspace-dsr, userspace or none.
	Proxies        []string `json:"proxies,omitempty"`
	Runtimes       []string `json:"runtimes,omitempty"`
	RuntimeVersion string   `json:"runtimeVersion,omitempty"`
}

// Ask is a check of a claim as the ledger has it, whether or not a setting of the run
// selects it: what is tried, and what the documents ask for there.
type Ask struct {
	Scope Scope `json:"scope"`
	// Kind is one of [Claim.CheckedBy], What the same as [Check.What].
	Kind string `json:"kind"`
	What string `json:"what"`
	// Expect is the verdict that is asked for, "" when the check only observes.
	Expect string `json:"expect,omitempty"`
	Basis  string `json:"basis,omitempty"`
	// Condition is what the documents make it depend on, in words.
	Condition string   `json:"condition,omitempty"`
	Dispute   *Dispute `json:"dispute,omitempty"`
}

// Design is a network design that the documents describe, whether or not the run has it.
type Design struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	Plugin  string `json:"plugin"`
	// Kubernetes is the range of versions in which the documents describe it.
	Kubernetes string `json:"kubernetes,omitempty"`
}
