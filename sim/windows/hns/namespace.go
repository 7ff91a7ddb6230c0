package hns

import (
	"slices"
	"strings"
)

// Namespace is a HostComputeNamespace: a network compartment and what is in it.
type Namespace struct {
	ID string `json:"ID,omitempty"`
	// NamespaceId is the number of the compartment.
	NamespaceId   uint32              `json:"NamespaceId,omitempty"`
	NamespaceGuid string              `json:"NamespaceGuid,omitempty"`
	Type          string              `json:"Type,omitempty"`
	Resources     []NamespaceResource `json:"Resources,omitempty"`
	SchemaVersion SchemaVersion       `json:"SchemaVersion,omitzero"`
}

// The namespace types.
const (
	NamespaceHost         = "Host"
	NamespaceHostDefault  = "HostDefault"
	NamespaceGuest        = "Guest"
	NamespaceGuestDefault = "GuestDefault"
)

// NamespaceResource is a container or endpoint in a namespace; Type is
// "Container" or "Endpoint", Data is {"Id": ...}.
type NamespaceResource struct {
	Type string                `json:"Type"`
	Data NamespaceResourceData `json:"Data"`
}

// NamespaceResourceData identifies the resource.
type NamespaceResourceData struct {
	Id string `json:"Id"`
}

// Endpoints returns the ids of the endpoints in the namespace.
func (n *Namespace) Endpoints() []string {
	var ids []string
	for _, r := range n.Resources {
		if strings.EqualFold(r.Type, "Endpoint") {
			ids = append(ids, r.Data.Id)
		}
	}
	return ids
}

func (n Namespace) clone() *Namespace {
	n.Resources = slices.Clone(n.Resources)
	return &n
}
