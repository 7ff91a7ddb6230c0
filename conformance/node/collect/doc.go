// Package collect takes a bundle (package bundle) from a Windows node: what decides about packets
// there, as it is, for somebody who looks at it elsewhere.
//
// It reads only. Each [Step] says what it reads and how; one that fails is noted in the bundle,
// and the others go on. HNS is asked through its own API, and its answers are kept as JSON as
// they came, with the fields that nobody here knows; the host's network comes from the IP Helper
// API in the fields of PowerShell's cmdlets, so that the readers of sim/windows/dump take it.
// What has no API that is documented (WinNAT, reserved ports, VFP) comes from Windows' tools.
//
// Secrets are never read. Values of variables, and what looks like a password or a token in
// command lines, configuration and logs, are taken out ([Redact]).
//
// The package must not know what a fact means, and it knows no lab.
package collect
