package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/conformance/check"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// attempt tries a spec and holds what came out against the documents. It skips what the
// cluster cannot show; an error says that it could not be tried.
//
// What comes out otherwise than documented while a node was not Ready is an error, too: it
// says nothing about the claim.
func (r *runner) attempt(ctx context.Context, e *Env, s *Spec) (result.Check, error) {
	start := time.Now()
	k, err := r.tryOut(ctx, e, s)
	if err == nil && k.Pass || ctx.Err() != nil {
		return k, err
	}
	if why := r.c.trouble(ctx, r.actors.client, start); why != "" {
		return k, unwell(why, strings.TrimSpace(k.Got+" "+k.Summary+" "+text(err)))
	}
	return k, err
}

// notWell begins what says that what came out says nothing of the claim.
const notWell = "the cluster was not well meanwhile: "

func unwell(why, what string) error {
	return fmt.Errorf("%s%s; what came out: %s", notWell, why, what)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// trouble says which of the nodes that were Ready when the run began were not since a time,
// or are not there any more; "" when all were.
func (c *Cluster) trouble(ctx context.Context, client kubernetes.Interface, since time.Time) string {
	var all []string
	for i := range c.nodes {
		if !ready(&c.nodes[i]) {
			continue
		}
		name := c.nodes[i].Name
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		var status apierrors.APIStatus
		if err != nil && !errors.As(err, &status) {
			return strings.Join(append(all, "the API server does not answer: "+err.Error()), "; ")
		}
		if err != nil {
			all = append(all, fmt.Sprintf("node %s: %v", name, err))
			continue
		}
		for _, k := range n.Status.Conditions {
			switch {
			case k.Type != v1.NodeReady:
			case k.Status != v1.ConditionTrue:
				all = append(all, fmt.Sprintf("node %s is not Ready: %s", name, k.Message))
			case k.LastTransitionTime.After(since):
				all = append(all, fmt.Sprintf("node %s is Ready again since %s", name, k.LastTransitionTime.Format(time.TimeOnly)))
			}
		}
	}
	return strings.Join(all, "; ")
}

// tryOut tries a spec.
func (r *runner) tryOut(ctx context.Context, e *Env, s *Spec) (result.Check, error) {
	d := s.Documented(r.targets)
	k := result.Check{Level: result.Cluster, What: s.What, Expect: d.Expect, Command: "winlab-e2e --claims " + s.Claim.ID}
	var err error
	switch s.Kind {
	case Packets:
		err = r.packets(ctx, e, s, &k)
	case Names:
		var got seen
		if got, err = r.actors.resolve(ctx, e, s.Check.Resolve); err == nil {
			k.Got, k.Summary = string(got.verdict), got.detail
			k.Pass = claims.MeetsSeen(k.Expect, got.verdict)
		}
	case Refusals:
		k.Expect = "refused"
		k.Got, k.Summary, err = r.refusal(ctx, s)
		k.Pass = k.Got == k.Expect
	case InGo:
		k.Got = claims.Works
		if why := s.try(ctx, e); why != nil {
			if ctx.Err() != nil || isUnreachable(why) || errors.Is(why, errNotPulled) || errors.Is(why, errNotScheduled) {
				err = why // of the cluster, and not of the claim
				break
			}
			k.Got, k.Summary = claims.Fails, why.Error()
		}
		k.Pass = k.Expect == "" || k.Got == k.Expect
	}
	var lacks errLacks
	if errors.As(err, &lacks) || errors.Is(err, errNotPulled) {
		skip("%v", err)
	}
	s.dispute(&k, d, err)
	if d.CarriedOver && k.Expect != "" {
		k.Summary = strings.TrimSpace("The documents were read up to Kubernetes " + claims.Newest() + "; what they say is taken to hold. " +
			k.Summary)
	}
	if d.Open != "" {
		k.Summary = strings.TrimSpace(d.Open + ". " + k.Summary)
	}
	return k, err
}

// dispute notes the other source of what is expected. What came out as that one says is a
// difference that fails no run.
func (s *Spec) dispute(k *result.Check, d claims.Documented, err error) {
	p := d.Dispute
	if p == nil {
		return
	}
	k.Dispute = &result.Dispute{By: p.By, Against: p.Against, Otherwise: p.Otherwise, Model: p.Model}
	if err == nil && !k.Pass && p.Explains(k.Got) {
		k.Explained = true
		k.Summary = strings.TrimSpace(s.Claim.OtherSide(p) + " " + k.Summary)
	}
}

func (r *runner) packets(ctx context.Context, e *Env, s *Spec, k *result.Check) error {
	f := s.Check.Flow
	expect := k.Expect
	if f.SeenAs != "" && expect == "" {
		expect = string(trace.Delivered)
	}
	got, err := r.actors.flow(ctx, e, f, expect)
	if err != nil {
		return err
	}
	k.Got, k.Summary = string(got.verdict), got.detail
	k.Pass = claims.MeetsSeen(k.Expect, got.verdict)
	if f.SeenAs == "" || got.verdict != trace.Delivered {
		return nil
	}
	want, err := r.addressesOf(ctx, e, f.SeenAs)
	if err != nil {
		return err
	}
	k.Summary = "The receiver sees " + got.source + "."
	if !slices.Contains(want, got.source) {
		k.Pass = false
		k.Summary = fmt.Sprintf("The receiver should see %s (%s), but sees %s.", f.SeenAs, strings.Join(want, ", "), got.source)
	}
	return nil
}

// addressesOf are those of an actor.
func (r *runner) addressesOf(ctx context.Context, e *Env, ref string) ([]string, error) {
	kind, name, _ := strings.Cut(ref, "/")
	if kind == "node" {
		n, err := r.actors.node(name)
		if err != nil {
			return nil, err
		}
		var all []string
		for _, a := range n.Status.Addresses {
			all = append(all, a.Address)
		}
		return all, nil
	}
	x, err := r.actors.actorFor(ctx, e, ref)
	if err != nil {
		return nil, err
	}
	return podAddresses(x.pod), nil
}

// refusal sends the example of a rule to the API server, which is asked to change
// nothing: it must refuse the bad example, and for another reason than that it is no
// object at all; the good one it must take.
func (r *runner) refusal(ctx context.Context, s *Spec) (got, why string, err error) {
	bad, err := r.dryRun(ctx, s.Check.Rule, s.Check.Rule.Bad)
	switch {
	case err != nil:
		return "", "", err
	case bad == errDropped:
		return "", "", errLacks{"the API server drops the field, as it does while the feature gate of it is off"}
	case bad == nil:
		return "taken", "The API server takes the example.", nil
	}
	if good := s.Check.Rule.Good; good != "" {
		refused, err := r.dryRun(ctx, s.Check.Rule, good)
		if err != nil {
			return "", "", err
		}
		if refused != nil && refused != errDropped {
			return "refused both", "The API server refuses the counterexample, too: " + refused.Error(), nil
		}
	}
	return "refused", bad.Error(), nil
}

// dryRun creates an object for trial. What is returned first is the API server's refusal
// of the object as invalid or forbidden; any other error is one of the trial.
func (r *runner) dryRun(ctx context.Context, rule *claims.Rule, example string) (refused, err error) {
	text, err := check.WholeExample(rule, example)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte("\n---")) {
		return nil, errLacks{"the example has several objects, and a trial run makes none that another could rest on"}
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		return nil, fmt.Errorf("the example of the rule: %w", err)
	}
	complete(u)
	mapping, err := r.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	in := r.dynamic.Resource(mapping.Resource)
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var made *unstructured.Unstructured
	if mapping.Scope.Name() == "namespace" {
		made, err = in.Namespace(metav1.NamespaceDefault).Create(ctx, u, options)
	} else {
		made, err = in.Create(ctx, u, options)
	}
	switch {
	case err == nil && dropped(made, rule.Field):
		return errDropped, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return err, nil
	case apierrors.IsAlreadyExists(err):
		return nil, nil
	}
	return nil, err
}

// errDropped says that an object was taken without the field that the rule is about.
var errDropped = errors.New("the field was dropped")

// dropped reports whether the last part of a field is nowhere in an object.
func dropped(made *unstructured.Unstructured, field string) bool {
	last := field[strings.LastIndexByte(field, '.')+1:]
	if last == "" || strings.ContainsAny(last, "[]\"") {
		return false
	}
	text, err := made.MarshalJSON()
	return err == nil && !bytes.Contains(text, []byte(`"`+last+`"`))
}

// complete adds what an example leaves out and every object needs.
func complete(u *unstructured.Unstructured) {
	if u.GetName() == "" {
		u.SetName("winlab-example")
	}
	u.SetNamespace("")
}
