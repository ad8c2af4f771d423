//go:build !linux

package main

import (
	"os"
	"syscall"
)

// watched is another process whose end is awaited.
type watched struct{ p *os.Process }

func watch(pid int) (watched, error) {
	p, err := os.FindProcess(pid)
	return watched{p}, err
}

func (w watched) stop() error { return w.p.Signal(syscall.SIGTERM) }

func (w watched) ended() bool { return w.p.Signal(syscall.Signal(0)) != nil }

func (w watched) close() { _ = w.p.Release() }
