//go:build !windows

package main

func processes() ([]proc, error) { return nil, errNotWindows }

func shutdownEvent(uint32) error { return errNotWindows }
