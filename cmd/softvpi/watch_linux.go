package main

import "golang.org/x/sys/unix"

// watched is another process whose end is awaited. The descriptor protects against reuse of its process
// ID, and reports the end even if nobody reaps the process, as in a container without an init.
type watched struct{ fd int }

func watch(pid int) (watched, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	return watched{fd}, err
}

func (w watched) stop() error { return unix.PidfdSendSignal(w.fd, unix.SIGTERM, nil, 0) }

func (w watched) ended() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 1
}

func (w watched) close() { _ = unix.Close(w.fd) }
