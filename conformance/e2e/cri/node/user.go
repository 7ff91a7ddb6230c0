package node

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/conformance/e2e/cri"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// userOf is the user of a Linux program: USER or USER:GROUP, each a number or a name of
// this machine, whose programs and users the containers have. Nil is user 0.
func userOf(p cri.Process) (*netns.User, error) {
	if p.User == "" && len(p.Groups) == 0 {
		return nil, nil
	}
	u := &netns.User{}
	name, group, _ := strings.Cut(p.User, ":")
	if name != "" {
		id, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			known, err := user.Lookup(name)
			if err != nil {
				return nil, fmt.Errorf("unable to find user %s: no matching entries in passwd file", name)
			}
			id, _ = strconv.ParseUint(known.Uid, 10, 32)
			gid, _ := strconv.ParseUint(known.Gid, 10, 32)
			u.GID = uint32(gid)
		} else if known, err := user.LookupId(name); err == nil {
			gid, _ := strconv.ParseUint(known.Gid, 10, 32)
			u.GID = uint32(gid)
		}
		u.UID = uint32(id)
	}
	if group != "" {
		id, err := strconv.ParseUint(group, 10, 32)
		if err != nil {
			known, err := user.LookupGroup(group)
			if err != nil {
				return nil, fmt.Errorf("unable to find group %s: no matching entries in group file", group)
			}
			id, _ = strconv.ParseUint(known.Gid, 10, 32)
		}
		u.GID = uint32(id)
	}
	for _, g := range p.Groups {
		if g < 0 || g > 1<<32-2 {
			return nil, fmt.Errorf("group %d: groups are 0 to %d", g, uint32(1<<32-2))
		}
		u.Groups = append(u.Groups, uint32(g))
	}
	return u, nil
}
