package hcn

import (
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// onEndpoint is a request about an endpoint that exists.
func onEndpoint(do func(*hns.Service, *hns.Endpoint, v1Call) (any, error)) func(*hns.Service, v1Call) (any, error) {
	return func(svc *hns.Service, c v1Call) (any, error) {
		e := svc.Endpoint(c.id)
		if e == nil {
			return nil, notFound(Endpoint, opV1, c.id)
		}
		return do(svc, e, c)
	}
}

func v1ListEndpoints(svc *hns.Service, _ v1Call) (any, error) {
	all := []hns.V1Endpoint{}
	for _, e := range svc.ListEndpoints(nil) {
		all = append(all, endpointV1(svc, e))
	}
	return all, nil
}

func v1GetEndpoint(svc *hns.Service, e *hns.Endpoint, _ v1Call) (any, error) {
	return endpointV1(svc, e), nil
}

func v1CreateEndpoint(svc *hns.Service, c v1Call) (any, error) {
	v, err := decodeV1[hns.V1Endpoint](c.request)
	if err != nil {
		return nil, err
	}
	e, err := hns.FromEndpointV1(v)
	if err != nil {
		return nil, err
	}
	e.State, e.SharedContainers = 0, nil // what HNS alone sets
	if e.HostComputeNetwork == "" && v.VirtualNetworkName != "" {
		if n := svc.NetworkByName(v.VirtualNetworkName); n != nil {
			e.HostComputeNetwork = n.ID
		}
	}
	made, err := svc.CreateEndpoint(e)
	if err != nil {
		return nil, err
	}
	return endpointV1(svc, made), nil
}

// v1UpdateEndpoint replaces the policies; nothing else of an endpoint can be changed.
func v1UpdateEndpoint(svc *hns.Service, e *hns.Endpoint, c v1Call) (any, error) {
	v, err := decodeV1[hns.V1Endpoint](c.request)
	if err != nil {
		return nil, err
	}
	in, err := hns.FromEndpointV1(hns.V1Endpoint{Policies: v.Policies, EncapOverhead: v.EncapOverhead})
	if err != nil {
		return nil, err
	}
	if err := svc.ReplaceEndpointPolicies(e.ID, in.Policies...); err != nil {
		return nil, err
	}
	return endpointV1(svc, svc.Endpoint(e.ID)), nil
}

func v1DeleteEndpoint(svc *hns.Service, e *hns.Endpoint, _ v1Call) (any, error) {
	return nil, svc.DeleteEndpoint(e.ID)
}

func endpointV1(svc *hns.Service, e *hns.Endpoint) hns.V1Endpoint {
	v := hns.EndpointV1(e, svc.Network(e.HostComputeNetwork))
	if v.Namespace != nil {
		if n := svc.Namespace(e.HostComputeNamespace); n != nil {
			v.Namespace.CompartmentId = n.NamespaceId
		}
	}
	return v
}

// attachment is to what an endpoint is attached (hcsshim EndpointAttachDetachRequest).
type attachment struct {
	ContainerId, SystemType, VirtualNicName string
	CompartmentId                           uint32
}

// v1Attach attaches an endpoint to the host's compartment, to another one, or to a
// container or virtual machine.
func v1Attach(svc *hns.Service, e *hns.Endpoint, c v1Call) (any, error) {
	to, err := decodeV1[attachment](c.request)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(to.SystemType, "Host") {
		return nil, attachCompartment(svc, e, to.CompartmentId)
	}
	owner, err := to.owner()
	switch {
	case err != nil:
		return nil, err
	case owner == "":
		return nil, errNoOwner()
	}
	return nil, svc.AttachContainer(e.ID, owner)
}

func v1Detach(svc *hns.Service, e *hns.Endpoint, c v1Call) (any, error) {
	from, err := decodeV1[attachment](c.request)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(from.SystemType, "Host") {
		if !e.Attached() {
			return nil, errorWith(hns.ErrElementNotFound, opV1, "the endpoint is not attached")
		}
		return nil, svc.DetachEndpoint(e.ID)
	}
	owner, err := from.owner()
	switch {
	case err != nil:
		return nil, err
	case owner == "" && len(e.SharedContainers) == 1:
		owner = e.SharedContainers[0] // hcsshim's VirtualMachineNICDetach does not name an owner
	case owner == "":
		return nil, errNoOwner()
	}
	return nil, svc.DetachContainer(e.ID, owner)
}

func attachCompartment(svc *hns.Service, e *hns.Endpoint, compartment uint32) error {
	if compartment <= 1 {
		return svc.AttachEndpoint(e.ID, svc.HostNamespace().ID)
	}
	all := svc.ListNamespaces(func(n *hns.Namespace) bool { return n.NamespaceId == compartment })
	if len(all) == 0 {
		return errorWith(hns.ErrElementNotFound, opV1, fmt.Sprintf("there is no compartment %d", compartment))
	}
	return svc.AttachEndpoint(e.ID, all[0].ID)
}

// owner is the container or the adapter of the virtual machine; "" when none is named.
func (a *attachment) owner() (string, error) {
	switch {
	case strings.EqualFold(a.SystemType, "VirtualMachine") && a.VirtualNicName != "":
		return a.VirtualNicName, nil
	case strings.EqualFold(a.SystemType, "VirtualMachine"), strings.EqualFold(a.SystemType, "Container"):
		return a.ContainerId, nil
	}
	return "", errorWith(hns.ErrInvalidParam, opV1, fmt.Sprintf("SystemType %q; it must be Host, Container or VirtualMachine", a.SystemType))
}

func errNoOwner() error {
	return errorWith(hns.ErrInvalidParam, opV1, "neither ContainerId nor VirtualNicName is given")
}

// v1Stats follows hcn.endpoint-stats.
func v1Stats(svc *hns.Service, c v1Call) (any, error) {
	e := svc.Endpoint(c.id)
	if e == nil {
		return nil, notFound(Endpoint, opV1, c.id)
	}
	return struct {
		BytesReceived, BytesSent, DroppedPacketsIncoming, DroppedPacketsOutgoing uint64
		EndpointId, InstanceId                                                   string
		PacketsReceived, PacketsSent                                             uint64
	}{EndpointId: strings.ToUpper(e.ID), InstanceId: strings.ToUpper(e.ID)}, nil
}
