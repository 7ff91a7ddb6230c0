package hcn

import "github.com/winlab-dev/winlab/sim/windows/hns"

// v1MACList is the list of hns.accelnet-management-macs as HNS v1 writes it.
type v1MACList struct {
	MacAddressList []v1MAC `json:",omitempty"`
}

type v1MAC struct {
	MacAddress string `json:",omitempty"`
}

func v1GetMACs(svc *hns.Service, _ v1Call) (any, error) {
	macs, err := svc.ManagementMACs()
	if err != nil {
		return nil, err
	}
	list := v1MACList{}
	for _, m := range macs {
		list.MacAddressList = append(list.MacAddressList, v1MAC{m})
	}
	return list, nil
}

func v1SetMACs(svc *hns.Service, c v1Call) (any, error) {
	list, err := decodeV1[v1MACList](c.request)
	if err != nil {
		return nil, err
	}
	var macs []string
	for _, m := range list.MacAddressList {
		macs = append(macs, m.MacAddress)
	}
	if err := svc.SetManagementMACs(macs); err != nil {
		return nil, err
	}
	return v1GetMACs(svc, c)
}

func v1DeleteMACs(svc *hns.Service, c v1Call) (any, error) {
	if err := svc.SetManagementMACs(nil); err != nil {
		return nil, err
	}
	return v1GetMACs(svc, c)
}
