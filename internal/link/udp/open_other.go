//go:build !linux

package udp

func open(cfg Config) (Link, error) { return openPortable(cfg) }
