package api

import "golang.org/x/sys/unix"

// credentials returns those of SO_PEERCRED.
func credentials(fd int) (peer, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return peer{}, err
	}
	return peer{int(c.Uid), int(c.Pid)}, nil
}
