package cable

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// gather is a descriptor that stays the same while those behind it change.
type gather struct{ fd int }

func (g *gather) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	g.fd = fd
	return nil
}

func (g *gather) add(fd int) {
	_ = unix.EpollCtl(g.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

func (g *gather) remove(fd int) { _ = unix.EpollCtl(g.fd, unix.EPOLL_CTL_DEL, fd, nil) }

func (g *gather) descriptors() []int { return []int{g.fd} }

func (g *gather) close() { unix.Close(g.fd) }
