package dump

import (
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Item is an object as hnsdiag list all shows it: without most of its fields.
type Item struct {
	// Kind is "Network", "Endpoint", "Namespace" or "LoadBalancer".
	Kind, ID, Name string
	// Network is the name of an endpoint's network.
	Network string
	// VIPs and Endpoints are those of a load balancer, Endpoints also those of a
	// namespace.
	VIPs, Endpoints []string
	// Fields are the indented fields of newer builds, by name in lower case.
	Fields map[string]string
	Place  Place
}

var (
	diagItem = lazyregexp.New(`^(Network|Endpoint|Namespace|Load ?Balancer)\s+:\s*([0-9A-Fa-f-]{36})\s*$`)
	diagHead = map[string]string{"Networks:": "Network", "Endpoints:": "Endpoint", "Namespaces:": "Namespace",
		"LoadBalancers:": "LoadBalancer"}
	guidEnd = lazyregexp.New(`[0-9A-Fa-f]{8}-[0-9A-Fa-f-]{27}`)
)

// Hnsdiag reads hnsdiag list all, of which two forms are known: sections with
// headings in any order (microsoft/SDN Kubernetes/windows/kubeadm/Kubecluster.md)
// and, on newer builds, blocks "Endpoint : GUID" with indented fields. sections
// are the headings that were there, by kind: one without rows says that there is
// nothing of the kind.
func Hnsdiag(l Lines) (items []Item, sections map[string]Place) {
	sections = map[string]Place{}
	kind := ""
	for i := 0; i < len(l.Text); i++ {
		text := strings.TrimLeft(l.Text[i], "> ")
		if m := diagItem.FindStringSubmatch(text); m != nil {
			item := Item{Kind: strings.ReplaceAll(m[1], " ", ""), ID: m[2], Fields: map[string]string{}, Place: l.Place(i)}
			for i++; i < len(l.Text) && Indent(l.Text[i]) > 0 && strings.Contains(l.Text[i], ":"); i++ {
				key, value, _ := strings.Cut(l.Text[i], ":")
				item.Fields[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
			}
			i--
			item.Name, item.Network = item.Fields["name"], item.Fields["virtual network name"]
			items = append(items, item)
			continue
		}
		if k := diagHead[strings.TrimSpace(text)]; k != "" {
			kind = ""
			if i+1 < len(l.Text) && strings.Contains(l.Text[i+1], "ID") {
				kind = k
				sections[k] = l.Place(i)
				i++ // the headings of the columns
			}
			continue
		}
		if kind == "" || Blank(text) {
			continue
		}
		item, ok := diagRow(kind, text)
		if !ok {
			kind = ""
			continue
		}
		item.Place = l.Place(i)
		items = append(items, item)
	}
	return items, sections
}

// diagRow reads a row below the headings.
func diagRow(kind, text string) (Item, bool) {
	at := guidEnd.FindStringIndex(text)
	if at == nil {
		return Item{}, false
	}
	item := Item{Kind: kind, ID: text[at[0]:at[1]], Name: strings.TrimSpace(text[:at[0]])}
	rest := text[at[1]:]
	switch kind {
	case "Endpoint":
		item.Network = strings.TrimSpace(rest)
	case "Namespace":
		item.Endpoints = guidEnd.FindAllString(rest, -1)
	case "LoadBalancer":
		vips, dips, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(rest), "|"), "|")
		item.VIPs, item.Endpoints = strings.Fields(vips), guidEnd.FindAllString(dips, -1)
	}
	return item, true
}

func (r *reader) hnsdiag(l Lines) {
	if !HasAny(l.Join(), "Networks:", "Endpoints:", "LoadBalancers:", "Network : ", "Endpoint : ", "Endpoint  ", "Network  ") {
		return
	}
	items, sections := Hnsdiag(l)
	if len(items)+len(sections) == 0 {
		return
	}
	r.addForm("a list of HNS")
	r.n.items = append(r.n.items, items...)
}
