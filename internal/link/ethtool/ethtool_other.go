//go:build !linux

// Package ethtool asks Linux for the speed of network interfaces, as ethtool does.
package ethtool

// Interface returns 0: the speed of interfaces is not known here.
func Interface(string) (bits uint64, half bool) { return 0, false }
