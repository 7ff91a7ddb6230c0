// Package collect collects a bundle (package bundle) on a Windows node: the state that decides
// about packets there, unchanged, to be examined elsewhere.
//
// It only reads. Each [Step] says what it reads and how; one that fails is noted in the bundle,
// and the others go on. HNS is asked through its own API, and its answers are kept as JSON as
// they came, with the fields that winlab does not know; the host's network comes from the IP Helper
// API in the fields of PowerShell's cmdlets, so that the readers of sim/windows/dump take it.
// What has no API that is documented (WinNAT, reserved ports, VFP) comes from Windows' tools.
//
// Secrets are never read. Values of variables, and what looks like a password or a token in
// command lines, configuration and logs, are removed ([Redact]).
//
// The package must not know what a fact means, and it knows no lab.
package collect
