package doctor

import (
	"fmt"

	"github.com/winlab-dev/winlab/conformance/node/observed"
)

// hnsRefused reports the codes with which HNS refused calls. What is behind one, another
// cause may say; the code and its words are what people search for.
func hnsRefused(x *nodeFacts) look {
	errors := x.n.HNSErrors()
	if len(errors) == 0 {
		if _, ok := x.n.Listed(observed.ListLogs); ok {
			return healthy("no log has an error code of HNS")
		}
		return lacks("No log; take those of kube-proxy, the kubelet and the network plugin")
	}
	var out look
	for _, e := range errors {
		call, times := "a call", ""
		if e.Op != "" {
			call = e.Op
		}
		if e.Count > 1 {
			times = fmt.Sprintf(", %d times", e.Count)
		}
		says := fmt.Sprintf("HNS refused %s with 0x%x (%s: %s)%s", call, e.Code, e.Name, e.Text, times)
		switch {
		case e.Code == 0:
			says = fmt.Sprintf("HNS refused %s: %s%s", call, e.Text, times)
		case e.Name == "":
			says = fmt.Sprintf("HNS refused %s with 0x%x, a code that no source explains%s", call, e.Code, times)
		}
		out.hits = append(out.hits, hit{says: says, evidence: e.Places})
	}
	return out
}
