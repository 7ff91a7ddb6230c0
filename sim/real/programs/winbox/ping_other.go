//go:build !windows

package main

import (
	"errors"
	"net/netip"
	"time"
)

// sendEcho is for Windows; on other systems tests have one of their own.
func sendEcho(netip.Addr, int, int, time.Duration) (echo, error) {
	return echo{}, errors.New("ping is for Windows")
}
