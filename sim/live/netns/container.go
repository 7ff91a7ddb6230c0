package netns

// Container is a program with a file system, a PID namespace and a list of processes of
// its own, in a namespace of the host. Its first process is number 1 in there, as in a
// container of containerd: the kernel ends all others with it, and a signal for which it
// has no handler does nothing but SIGKILL.
//
// The IPC namespace is that of its network namespace, as in a pod. What it does not have: cgroups
// (so limits of memory and CPU are held from outside), a seccomp filter, a terminal in its own
// /dev/pts.
type Container struct {
	// Name is its name in the namespace.
	Name string
	// OwnRoot gives it a root file system in memory with the machine's programs and
	// libraries in it, which cannot be written (/usr, and what of /etc programs need), and
	// writable folders: /tmp, /var, /run, /home, /root. Else the root is that of the
	// namespace, and only Mounts are its own.
	OwnRoot bool
	// ReadOnly makes that root read-only, but for /dev, /proc and Mounts.
	ReadOnly bool
	// Files are written into an OwnRoot, by their path. Those of the namespace
	// (Spec.Files) are there already.
	Files map[string]string
	// Processes is a container of the same namespace whose PID namespace it shares: then
	// its first process is not number 1, and it ends with the other at the latest. "" is a
	// PID namespace of its own.
	Processes string
	// Mounts are made in their order.
	Mounts []Mount
	// First is a command that runs before the program in the container and must succeed:
	// what it leaves running stays. Nil for none.
	First []string

	// Data is the most that each of its processes can have of memory that is its own and can
	// be written (RLIMIT_DATA), in bytes; more is refused to it. 0 means no limit. First has
	// none, nor what it leaves.
	Data uint64

	// CPU is the most that its processes together can use of processors, in thousandths of
	// one; 0 means no limit. They are stopped (SIGSTOP) while they have used more, over some
	// tenths of a second: who asks sees the state T. What one of them has stopped itself
	// runs on with the others.
	CPU int64

	// Privileged leaves user 0 all capabilities. Else it has those that containerd
	// gives, and AddCaps but not DropCaps, such as "NET_ADMIN" or "ALL".
	Privileged        bool
	AddCaps, DropCaps []string
	// NoNewPrivileges keeps programs from getting more by set-user-ID bits.
	NoNewPrivileges bool
}

// Mount is a file or folder that a container sees at another place.
type Mount struct {
	// Source is what it sees, Target where: absolute paths. What is missing of the
	// target is made.
	Source, Target string
	// From is the namespace in whose view the source is, "" for the container's: what
	// programs of another have mounted there is not seen elsewhere. Mounts below the
	// source are part of it.
	From     string
	ReadOnly bool
}

// User is the user that a program runs as. With a [Host] that root has started without
// a user namespace of one user, all users exist. Else each program sees itself as the
// wanted one, and is for the kernel the user who started the Host: files of others are
// those of "nobody" to it, its own look like the wanted user's, and Groups do not count.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// Usage is what the processes of a container use.
type Usage struct {
	// CPU is in nanoseconds, also of processes that have ended.
	CPU uint64
	// Memory is the resident memory in bytes, with what processes share divided among
	// them.
	Memory uint64
	// Processes is how many there are.
	Processes int
	// Disk is what its files in an OwnRoot take in bytes, Inodes their number.
	Disk, Inodes uint64
}
