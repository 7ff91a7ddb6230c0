package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// reader turns texts of a lab into values and keeps every mistake. Labs that were
// read from a file have been checked before; what is left to find here is in
// settings and in labs that were made in another way.
type reader struct{ mistakes []error }

func (r *reader) err() error { return errors.Join(r.mistakes...) }

func (r *reader) note(err error) {
	if err != nil {
		r.mistakes = append(r.mistakes, err)
	}
}

// addr reads an address; an empty text is the zero Addr.
func (r *reader) addr(text string) netip.Addr {
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		r.note(fmt.Errorf("%q is not an address", text))
	}
	return a
}

// prefix reads a prefix, with host bits or without; an empty text is the zero Prefix.
func (r *reader) prefix(text string) netip.Prefix {
	if text == "" {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		r.note(fmt.Errorf("%q is not a prefix", text))
	}
	return p
}

// prefixes reads those texts that are not empty.
func (r *reader) prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, t := range texts {
		if p := r.prefix(t); p.IsValid() {
			all = append(all, p)
		}
	}
	return all
}

func (r *reader) version(text string) kube.Version {
	v, err := kube.ParseVersion(text)
	r.note(err)
	return v
}

func (r *reader) listen(texts []string) []labfile.ListenPort {
	var all []labfile.ListenPort
	for _, t := range texts {
		l, err := labfile.ParseListen(t)
		r.note(err)
		all = append(all, l)
	}
	return all
}

func parseVNI(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 24)
	if err != nil {
		return 0, fmt.Errorf("parameter %s: %q is not a virtual network identifier", labfile.ParamVNI, text)
	}
	return uint32(n), nil
}
