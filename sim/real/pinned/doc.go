// Package pinned builds programs from modules whose versions and checksums are pinned in
// a folder, and keeps them in the cache:
//
//	bin, err := pinned.Build(ctx, "fixtures/windows-binaries/cni-plugins-1.9.1")
//	bin.Path("win-bridge.exe")
//
// It must not know what the programs are for, nor what runs them.
package pinned
