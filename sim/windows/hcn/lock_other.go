//go:build !unix

package hcn

// lockDir does nothing where there is no flock.
func lockDir(string) (func(), error) { return func() {}, nil }
