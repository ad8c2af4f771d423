package peer

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// credentials returns those of SO_PEERCRED, with the groups of SO_PEERGROUPS (Linux 4.13).
func credentials(fd int) (Process, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: int(c.Pid), UID: int(c.Uid), GIDs: []int{int(c.Gid)}}
	for _, g := range groups(fd) {
		if !slices.Contains(p.GIDs, int(g)) {
			p.GIDs = append(p.GIDs, int(g))
		}
	}
	return p, nil
}

// maxGroups is how many supplementary groups a process can have (NGROUPS_MAX).
const maxGroups = 1 << 16

// groups returns the supplementary groups of the peer, none if the system does not tell.
func groups(fd int) []uint32 {
	list := make([]uint32, 64)
	for {
		size := uint32(len(list) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0 && int(size/4) <= len(list):
			return list[:size/4]
		case errno == unix.ERANGE && len(list) < maxGroups: // size says how many there are
			list = make([]uint32, max(2*len(list), int(size/4)))
		default:
			return nil
		}
	}
}
