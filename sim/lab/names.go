package lab

import "strings"

// Names lists the ends that a flow in this lab can have, as `winlab trace`
// takes them: from can send, to is everything that can be reached.
func (c *Cluster) Names() (from, to []string) {
	short := func(kind, key string) string {
		if ns, name, ok := strings.Cut(key, "/"); ok && ns == "default" {
			return kind + name
		}
		return kind + key
	}
	for _, key := range c.podOrder {
		from = append(from, short("pod/", key))
	}
	for _, n := range c.Kube.Nodes {
		from = append(from, "node/"+n.Name)
	}
	for _, name := range c.hostNames() {
		from = append(from, "host/"+name)
	}
	to = append(to, from...)
	for _, s := range c.Kube.Services {
		to = append(to, short("svc/", s.Key()))
	}
	return from, to
}
