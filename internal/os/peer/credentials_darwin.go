package peer

import "golang.org/x/sys/unix"

// credentials returns those of LOCAL_PEERCRED and LOCAL_PEERPID.
func credentials(fd int) (Process, error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Process{}, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: pid, UID: int(c.Uid)}
	for _, g := range c.Groups[:min(int(c.Ngroups), len(c.Groups))] {
		p.GIDs = append(p.GIDs, int(g))
	}
	return p, nil
}
