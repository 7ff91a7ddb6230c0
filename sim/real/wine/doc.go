// Package wine runs real Windows programs on Linux: it finds Wine, makes a Wine
// prefix that looks like one Windows build, and starts and ends programs in it.
//
//	w, err := wine.Find()
//	p, err := w.Prefix(ctx, wine.Config{Dir: dir, Build: build, DLLs: []string{shims}})
//	defer p.Close()
//	r, err := p.Run(ctx, wine.Command{Path: "win-bridge.exe", Env: env, Stdin: conf})
//
// What is slow is done once and cached by content: the bare prefix that wineboot makes. A prefix of a build is a copy of that
// with the registry of the build and the caller's DLLs, and is gone after Close.
// Any number may be used at once, by any number of programs.
//
// No process is left, however the caller ends. Each prefix has a guard, a small
// process that waits for the caller to go away, then ends all of Wine in that
// prefix and removes it.
//
// Wine is not a sandbox: programs see the whole file system as Z:\ and the machine's
// network. Run only programs that you would run anyway.
//
// The package must know nothing about HNS, networks or Kubernetes: the caller
// knows which DLLs a program needs and what answers them.
package wine
