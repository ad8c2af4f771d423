package api

import "golang.org/x/sys/unix"

// credentials returns those of LOCAL_PEERCRED and LOCAL_PEERPID.
func credentials(fd int) (peer, error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return peer{}, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return peer{}, err
	}
	return peer{int(c.Uid), pid}, nil
}
