package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hns asserts what is programmed on a node.
func (ch *checker) hns(r *result.Check, k claims.Check) error {
	q := k.HNS
	s := ch.c.HNS(q.Node)
	if s == nil {
		r.Got, r.Reason, r.Grade = string(trace.Unknown), string(trace.ModelHole), evidence.Unknown
		r.Pass = !k.Asks() // an observation is met by every answer
		r.Summary = "The model of this design does not go through HNS on " + q.Node + "."
		return nil
	}
	got, err := query(ch, s, q.Node, q.Query)
	if err != nil {
		return err
	}
	r.Got, r.Pass = strings.Join(got, ", "), want(q.Want, got)
	if r.Got == "" {
		r.Got = "none"
	}
	r.Summary = fmt.Sprintf("%s on %s: %s.", q.Query, q.Node, r.Got)
	if q.Want != "" && !r.Pass {
		r.Summary = fmt.Sprintf("%s on %s is %s, should be %s.", q.Query, q.Node, r.Got, q.Want)
		r.Wanted, r.Came = q.Want, r.Got
	}
	r.Grade = evidence.Code
	r.Command = ch.c.ExportCommand(q.Node)
	return nil
}

// podNetworks are the networks that have a pod's endpoint.
func podNetworks(ch *checker, s *hns.Service, node string) []*hns.Network {
	var ns []*hns.Network
	for _, e := range podEndpoints(ch, s, node) {
		if n := s.Network(e.HostComputeNetwork); n != nil && !slices.Contains(ns, n) {
			ns = append(ns, n)
		}
	}
	return ns
}

func podEndpoints(ch *checker, s *hns.Service, node string) []*hns.Endpoint {
	ids := ch.c.PodEndpoints(node)
	return s.ListEndpoints(func(e *hns.Endpoint) bool { return slices.Contains(ids, strings.ToLower(e.ID)) })
}

func query(ch *checker, s *hns.Service, node, q string) ([]string, error) {
	switch {
	case q == "networks.type":
		var types []string
		for _, n := range podNetworks(ch, s, node) {
			types = append(types, strings.ToLower(string(n.Type)))
		}
		return types, nil
	case q == "networks.count":
		return []string{strconv.Itoa(len(podNetworks(ch, s, node)))}, nil
	case q == "vswitch.type":
		var kinds []string
		for _, n := range podNetworks(ch, s, node) {
			kinds = append(kinds, ch.c.SwitchKind(node, n.ID))
		}
		return kinds, nil
	case q == "endpoints.count":
		return []string{strconv.Itoa(len(podEndpoints(ch, s, node)))}, nil
	case q == "loadBalancers.count":
		return []string{strconv.Itoa(len(s.ListLoadBalancers(nil)))}, nil
	}
	pod, ok := strings.CutPrefix(q, "endpoint(")
	pod, ok2 := strings.CutSuffix(pod, ").policies")
	if !ok || !ok2 {
		return nil, fmt.Errorf("there is no HNS query %q", q)
	}
	id := ch.c.PodEndpoint(strings.TrimPrefix(pod, "pod/"))
	e := s.Endpoint(id)
	if e == nil {
		return nil, fmt.Errorf("pod %s has no endpoint on %s", pod, node)
	}
	var types []string
	for _, p := range e.Policies {
		if typ := string(p.Type()); !slices.Contains(types, typ) {
			types = append(types, typ)
		}
	}
	return types, nil
}

// want compares values with what a claim wants: a value, a comparison for
// counts, or a list of which every entry must be there ("!X": must not).
func want(w string, got []string) bool {
	if w == "" {
		return true
	}
	if op, num, ok := comparison(w); ok && len(got) == 1 {
		n, err := strconv.Atoi(got[0])
		return err == nil && compare(op, n, num)
	}
	for f := range strings.SplitSeq(w, ",") {
		f, unwanted := strings.CutPrefix(strings.TrimSpace(f), "!")
		if slices.Contains(got, f) == unwanted {
			return false
		}
	}
	return true
}

func compare(op string, n, with int) bool {
	switch op {
	case ">=":
		return n >= with
	case "<=":
		return n <= with
	case ">":
		return n > with
	}
	return n < with
}

func comparison(w string) (op string, n int, ok bool) {
	for _, op := range []string{">=", "<=", ">", "<"} {
		if num, found := strings.CutPrefix(w, op); found {
			n, err := strconv.Atoi(strings.TrimSpace(num))
			return op, n, err == nil
		}
	}
	return "", 0, false
}
