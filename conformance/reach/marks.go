package reach

import (
	"slices"
	"strconv"
	"strings"
)

// A text about a pod names others by marks, so that it is written once: the name of
// another pod depends on what is asked. A list of addresses with marks has an end and a
// beginning, as its order is that of the pods in it.
const (
	markBegins = '\x01'
	markEnds   = '\x02'
	listBegins = '\x03'
	listEnds   = '\x04'
	marks      = "\x01\x02\x03\x04"
)

func isMarked(s string) bool { return strings.IndexByte(s, markBegins) >= 0 }

// markOf stands for an address of a pod.
func (s *space) markOf(q *pod, address int) string {
	if q.mark == 0 {
		s.marked = append(s.marked, q)
		q.mark = len(s.marked)
	}
	return string(markBegins) + strconv.Itoa(q.mark) + "." + strconv.Itoa(address) + string(markEnds)
}

// marks replaces each pod in a text by what item returns: item gets the pod, and which of its
// addresses it is with the rest of the word. list joins the words of a list.
func (s *space) marks(text string, item func(q *pod, behind string) string, list func(items []string) string) string {
	if !isMarked(text) {
		return text
	}
	one := func(word string) string {
		i := strings.IndexByte(word, markBegins)
		if i < 0 {
			return word
		}
		j := i + strings.IndexByte(word[i:], markEnds)
		q, address := s.pointedBy(word[i+1 : j])
		return word[:i] + item(q, " "+address+")"+word[j+1:])
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		i := strings.IndexAny(text, string(markBegins)+string(listBegins))
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		end, isList := markEnds, text[i] == listBegins
		if isList {
			end = listEnds
		}
		j := i + strings.IndexRune(text[i:], end)
		words := []string{text[i : j+1]}
		if isList {
			words = strings.Split(text[i+1:j], ",")
		}
		for k := range words {
			words[k] = one(words[k])
		}
		b.WriteString(list(words))
		text = text[j+1:]
	}
}

// named is a text with the classes of the pods in it.
func (s *space) named(text string) string {
	return s.marks(text, func(q *pod, behind string) string { return "(class " + strconv.Itoa(q.class) + behind },
		func(items []string) string {
			slices.Sort(items)
			return strings.Join(items, ",") + ","
		})
}

// raw is a text with the names of the pods in it.
func (s *space) raw(text string) string {
	return s.marks(text, func(q *pod, behind string) string { return "(pod " + q.plan.Key() + behind }, func(items []string) string {
		slices.Sort(items)
		return strings.Join(items, ",") + ","
	})
}

// pointedBy is the pod and the number of its address in a mark.
func (s *space) pointedBy(mark string) (q *pod, address string) {
	number, address, _ := strings.Cut(mark, ".")
	n, _ := strconv.Atoi(number)
	return s.marked[n-1], address
}

// pointed are the pods in a text.
func (s *space) pointed(text string) (all []*pod) {
	s.marks(text, func(q *pod, _ string) string { all = append(all, q); return "" }, func([]string) string { return "" })
	return all
}
