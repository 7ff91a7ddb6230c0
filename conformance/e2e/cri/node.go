package cri

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Node is the machine that a runtime's sandboxes and containers are on.
type Node interface {
	// AddSandbox makes the network of a pod. The error of a network plugin comes back.
	AddSandbox(context.Context, Sandbox) ([]netip.Addr, error)
	// RemoveSandbox takes it away with all that runs in it. One that is not there is
	// no error.
	RemoveSandbox(ctx context.Context, id string) error
	// CreateContainer prepares a container in a sandbox; nothing runs yet.
	CreateContainer(ctx context.Context, sandbox string, c Container) (Task, error)
	// Dial connects to a TCP port of a sandbox, as a program in it connects to its own
	// loopback address.
	Dial(ctx context.Context, sandbox string, port uint16) (net.Conn, error)
}

// Sandbox is the network of a pod.
type Sandbox struct {
	ID string
	// Name, Namespace and UID are those of the pod.
	Name, Namespace, UID string
	// Hostname is "" for that of the node.
	Hostname            string
	Labels, Annotations map[string]string
	// HostNetwork shares the node's network, HostProcess (Windows) all of the node.
	HostNetwork, HostProcess bool
	Ports                    []Port
	DNS                      DNS
}

// Port is a port of the node that leads to one of the sandbox.
type Port struct {
	// Protocol is "tcp", "udp" or "sctp".
	Protocol            string
	HostIP              string
	HostPort, Container uint16
}

// DNS is how programs resolve names. The zero value is the node's way.
type DNS struct{ Servers, Searches, Options []string }

// Container is one that shall be made.
type Container struct {
	// ID is unique; Name is that in the pod.
	ID, Name string
	// Process is its first process.
	Process Process
	Mounts  []Mount
	// HostProcess runs it as a program of a Windows node itself.
	HostProcess bool
	// ReadOnly makes its own files read-only, Privileged gives it all that the node has.
	ReadOnly, Privileged bool
	// AddCaps and DropCaps are capabilities of Linux, "NET_ADMIN", or "ALL".
	AddCaps, DropCaps []string
	NoNewPrivileges   bool
	// TargetPID is the container whose processes it sees, "" for its own only.
	TargetPID string
	Limits    Limits
	// CredentialSpec is the domain account of a Windows container, in JSON.
	CredentialSpec string
}

// Process is a program of a container.
type Process struct {
	// Args begin with the program.
	Args []string
	// Env is what the image and the pod say, NAME=VALUE.
	Env []string
	// Dir is "" for the system's default.
	Dir string
	// User is a Windows user's name, or on Linux a number or name, with ":GROUP".
	User string
	// Groups are further ones on Linux.
	Groups []int64
	// Terminal says that the standard input is a terminal.
	Terminal bool
}

// Mount is a file or folder that a container sees. Source is on this machine. Of the
// pod's mounts it is what programs of the node find there, which may have mounted
// something themselves; Image says that it is a file of the image.
type Mount struct {
	Source, Target  string
	ReadOnly, Image bool
}

// Limits of a container; 0 means no limit.
type Limits struct {
	// CPU is in thousandths of a processor, Memory in bytes.
	CPU, Memory int64
}

// Task is a container of a node.
type Task interface {
	// Start starts the first process, whose standard input, output and error are three
	// open files. The caller closes them.
	Start(ctx context.Context, stdio [3]*os.File) error
	// Exec starts another one.
	Exec(ctx context.Context, p Process, stdio [3]*os.File) (Execution, error)
	// Signal sends a signal to the first process. That there is none is no error.
	Signal(ctx context.Context, s syscall.Signal) error
	// Wait waits until the first process has ended.
	Wait(ctx context.Context) (Exit, error)
	Usage(ctx context.Context) (Usage, error)
	// Remove ends all its processes and takes its files away.
	Remove(ctx context.Context) error
}

// Execution is a process beside a container's first.
type Execution interface {
	Wait(ctx context.Context) (Exit, error)
	// Kill ends it, and what it has started.
	Kill(ctx context.Context) error
}

// Exit is how a process ended.
type Exit struct {
	Code   int
	Signal syscall.Signal // 0 if it ended by itself
	// OutOfMemory says that the system ended it because of its memory limit.
	OutOfMemory bool
}

// code is what CRI reports: shells and container runtimes add 128 to a signal.
func (e Exit) code() int32 {
	if e.Signal != 0 {
		return 128 + int32(e.Signal)
	}
	return int32(uint32(e.Code)) // Windows' codes have 32 bits
}

// Usage is what a container takes.
type Usage struct {
	At time.Time
	// CPU is the processor time of all its processes so far.
	CPU time.Duration
	// Memory is what they have in memory, Virtual what they have reserved, in bytes.
	Memory, Virtual uint64
	Processes       uint64
	// Disk is what its own files take, in bytes; Inodes their number.
	Disk, Inodes uint64
}
