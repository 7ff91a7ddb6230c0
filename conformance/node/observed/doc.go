// Package observed reads a folder of files from a Windows node: the
// output of PowerShell and of Windows' own tools, configuration files, command
// lines, logs. It turns them into facts, each with the file and the line it
// was read from.
//
// A file is recognised by its content; its name helps only where the content
// is not enough, for example whether a ping was sent by the node or in a pod.
// Windows PowerShell's encodings are read: UTF-16, byte order marks, CRLF. A
// file may be a transcript with several commands in it. What cannot be read is
// a mistake, and the other files are read on.
//
// The package knows how tools print. It does not judge: what a fact means is
// for conformance/node/doctor, and what documents say about it for the ledger.
package observed
