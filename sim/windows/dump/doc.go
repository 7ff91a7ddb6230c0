// Package dump reads what a Windows node prints of itself: the output of
// PowerShell and of Windows' own tools, in the forms in which people save and
// post it. A lab (hnsDump) and winlab doctor read a form by the same function.
//
// The lower half knows how tools print: text.go has lines with their places,
// section.go transcripts, tree.go JSON, list.go PowerShell's Format-List,
// table.go Format-Table. Objects come out as trees whose nodes know their lines,
// however they were printed.
//
// Windows PowerShell's encodings are read: UTF-16, byte order marks, CRLF.
//
// The package knows no lab, no Kubernetes and no claim, and it does not judge.
package dump
