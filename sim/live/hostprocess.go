package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/winlab-dev/winlab/sim/live/netns"
)

// hostRootVariable tells a HostProcess container where its image and its volumes are. On
// Windows without file binding, which is what there is here, that is a folder of the node
// for each container, C:\hpc\ID, in which the volumes are links; command lines,
// environments and working folders may name the variable
// (microsoft/hcsshim internal/jobcontainers jobcontainer.go, Create and CreateProcess).
const hostRootVariable = "CONTAINER_SANDBOX_MOUNT_POINT"

// hostRoot is the folder of a HostProcess container.
func (h *ContainerHandle) hostRoot() string { return `C:\hpc\` + h.c.Name }

// hostProcess completes a command of a HostProcess container: with the folder of its image
// and volumes, which is made at the first.
func (h *ContainerHandle) hostProcess(prefix string, c netns.Command) (netns.Command, error) {
	root := h.hostRoot()
	at, err := onDrive(prefix, root)
	if err != nil {
		return c, err
	}
	if h.hostFolder.CompareAndSwap(nil, &at) {
		if err := h.linkMounts(prefix, at); err != nil {
			return c, err
		}
	}
	named := strings.NewReplacer("%"+hostRootVariable+"%", root, "$env:"+hostRootVariable, root).Replace
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = named(a)
	}
	c.Args = args
	env := make([]string, 0, len(c.Env)+1)
	for _, kv := range c.Env {
		env = append(env, named(kv))
	}
	c.Env = append(env, hostRootVariable+"="+root)
	switch dir := named(c.Dir); {
	case dir == c.Dir: // it is one of the container
		if isDrivePath(dir) {
			dir = dir[2:]
		}
		c.Dir = root + `\` + strings.Trim(strings.ReplaceAll(dir, "/", `\`), `\`)
	default:
		c.Dir = dir
	}
	to, err := onDrive(prefix, c.Dir)
	if err == nil {
		err = os.MkdirAll(to, 0o755)
	}
	return c, err
}

// linkMounts makes the folder of a HostProcess container. Mounts below others come last, so
// a link that another one would have to be in is in the way, which is an error.
func (h *ContainerHandle) linkMounts(prefix, root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for _, m := range h.mounts() {
		source := m.Source
		if isDrivePath(source) {
			var err error
			if source, err = onDrive(prefix, source); err != nil {
				return fmt.Errorf("mount %s: %w", m.Target, err)
			}
		}
		path := strings.ReplaceAll(m.Target, `\`, "/")
		if isDrivePath(path) {
			path = path[2:]
		}
		to := filepath.Join(root, filepath.Clean("/"+path))
		err := os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil {
			err = os.Symlink(source, to)
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	return nil
}
