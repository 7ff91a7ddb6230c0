package components

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/winlab-dev/winlab/sim/wine"
)

// CNI is one call of a CNI plugin, as a container runtime makes it (CNI
// specification 1.1.0, section 2).
type CNI struct {
	// Plugins are the built plugins, Plugin is the one to call, "win-bridge". It
	// finds the others, for example host-local, beside itself.
	Plugins *wine.Binaries
	Plugin  string
	// Command is ADD, DEL, CHECK, STATUS or VERSION.
	Command string
	// ContainerID, NetNS and IfName name the sandbox. NetNS is the GUID of its HCN
	// namespace; with the v1 API "none", or "container:ID" of the sandbox.
	ContainerID, NetNS, IfName string
	// Args is CNI_ARGS, "K8S_POD_NAME=x;K8S_POD_NAMESPACE=y".
	Args string
	// Config is the network configuration that the plugin reads.
	Config []byte
}

// CNIError is a plugin's refusal, as it writes it to its output.
type CNIError struct {
	Plugin, Command string `json:"-"`
	Code            uint
	Msg, Details    string
}

// Error returns the plugin's message and details.
func (e *CNIError) Error() string {
	s := fmt.Sprintf("%s %s: %s (code %d)", e.Plugin, e.Command, e.Msg, e.Code)
	if e.Details != "" {
		s += ": " + e.Details
	}
	return s
}

// CNI calls a plugin and returns its result, a JSON document, or nothing where the
// command has none. A refusal of the plugin is a [*CNIError].
func (n *Node) CNI(ctx context.Context, c CNI) ([]byte, error) {
	path := c.Plugins.Path(strings.TrimSuffix(c.Plugin, ".exe") + ".exe")
	if path == "" {
		return nil, fmt.Errorf("there is no CNI plugin %q; there are %s", c.Plugin, strings.Join(c.Plugins.Names, ", "))
	}
	env := []string{"CNI_COMMAND=" + c.Command, "CNI_PATH=" + wine.Path(filepath.Dir(path))}
	for _, v := range [][2]string{{"CNI_CONTAINERID", c.ContainerID}, {"CNI_NETNS", c.NetNS}, {"CNI_IFNAME", c.IfName}, {"CNI_ARGS", c.Args}} {
		if v[1] != "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	r, err := n.Run(ctx, wine.Command{Path: path, Env: env, Stdin: bytes.NewReader(c.Config)})
	if err != nil {
		return nil, err
	}
	if r.Code == 0 {
		return []byte(r.Stdout), nil
	}
	refusal := &CNIError{Plugin: c.Plugin, Command: c.Command}
	if err := json.Unmarshal([]byte(r.Stdout), refusal); err != nil || refusal.Code == 0 && refusal.Msg == "" {
		return nil, fmt.Errorf("%s %s ended with code %d and wrote no result: %s%s", c.Plugin, c.Command, r.Code, r.Stdout, r.Stderr)
	}
	return nil, refusal
}
