package components

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine"
)

// cniCall is one call of a CNI plugin, as a container runtime makes it (CNI
// specification 1.1.0, section 2).
type cniCall struct {
	// Plugins are the built plugins, Plugin is the one to call, "win-bridge". It
	// finds the others, for example host-local, beside itself.
	Plugins *pinned.Binaries
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

// cniError is a plugin's refusal, as it writes it to its output.
type cniError struct {
	Plugin, Command string `json:"-"`
	Code            uint
	Msg, Details    string
}

// Error returns the plugin's message and details.
func (e *cniError) Error() string {
	s := fmt.Sprintf("%s %s: %s (code %d)", e.Plugin, e.Command, e.Msg, e.Code)
	if e.Details != "" {
		s += ": " + e.Details
	}
	return s
}

// Refused reports whether an error is a plugin's own: what it answered to a call, and not
// a program that could not be run here.
func Refused(err error) bool {
	var r *cniError
	return errors.As(err, &r)
}

// notStarted reports whether a plugin refused because Wine did not start its IPAM plugin
// or delegate: a new process that ends before it is ready is STATUS_INTERNAL_ERROR (wine
// dlls/ntdll/unix/process.c NtCreateUserProcess). On a busy machine that happens once in
// some thousand starts, and says nothing about plugin or HNS.
func (e *cniError) notStarted() bool {
	text := e.Msg + e.Details
	return strings.Contains(text, "fork/exec") && strings.Contains(text, "Internal error.")
}

// errSilent says that a program failed without a result or a reason of its own. A plugin
// always writes why it fails (CNI specification 1.1.0, section 5); so it was Wine that did
// not start it.
var errSilent = errors.New("ended without a result; Wine did not start it")

// callCNI calls a plugin and returns its result, a JSON document, or nothing where the command
// does not have one. A refusal of the plugin is a [*cniError]. Where Wine did not start the
// plugin, or the plugin's own plugin, it calls again.
func (n *Node) callCNI(ctx context.Context, c cniCall) (out []byte, err error) {
	for range wine.Starts {
		out, err = n.callOnce(ctx, c)
		var refusal *cniError
		if !errors.Is(err, errSilent) && !(errors.As(err, &refusal) && refusal.notStarted()) {
			break
		}
	}
	return out, err
}

func (n *Node) callOnce(ctx context.Context, c cniCall) ([]byte, error) {
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
	r, err := n.run(ctx, wine.Command{Path: path, Env: env, Stdin: bytes.NewReader(c.Config)})
	if err != nil {
		return nil, err
	}
	if r.Code == 0 {
		return []byte(r.Stdout), nil
	}
	if wine.NeverBegan(r.Stdout, r.Stderr) {
		return nil, fmt.Errorf("%s %s (code %d): %w", c.Plugin, c.Command, r.Code, errSilent)
	}
	refusal := &cniError{Plugin: c.Plugin, Command: c.Command}
	if err := json.Unmarshal([]byte(r.Stdout), refusal); err != nil || refusal.Code == 0 && refusal.Msg == "" {
		return nil, fmt.Errorf("%s %s ended with code %d and wrote no result: %s%s", c.Plugin, c.Command, r.Code, r.Stdout, r.Stderr)
	}
	return nil, refusal
}
