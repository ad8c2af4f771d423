package tun

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// site is the location of an interface: when it is moved to another network namespace its index changes.
type site struct {
	name  string
	index int
	ask   *netlink.Handle
	space netns.NsHandle
}

// newSite finds an interface in a namespace, which the site owns from now on.
func newSite(space netns.NsHandle, name string) (*site, error) {
	s := &site{name: name, space: space}
	var err error
	if s.ask, err = netlink.NewHandleAt(space, unix.NETLINK_ROUTE); err != nil {
		s.close()
		return nil, fmt.Errorf("interface %q: netlink: %w", name, err)
	}
	l, err := s.ask.LinkByName(name)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("interface %q: %w", name, err)
	}
	s.index = l.Attrs().Index
	return s, nil
}

func (s *site) close() {
	if s.ask != nil {
		s.ask.Close()
	}
	s.space.Close()
}

func (s *site) link() netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: s.index, Name: s.name}}
}

// Deleted reports whether the interface of a descriptor was deleted.
func Deleted(fd int) bool {
	r, err := unix.NewIfreq("")
	return err == nil && unix.IoctlIfreq(fd, unix.TUNGETIFF, r) == unix.EBADFD
}

// Up reports whether the interface of a descriptor is up, in whatever network namespace it is: it takes frames only then.
func Up(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0 && p[0].Revents&(unix.POLLOUT|unix.POLLERR) == unix.POLLOUT
}

// Whereabouts returns where the interface of a descriptor is now, which may have been moved to another network namespace and
// renamed. The caller closes the namespace. The error is the system's.
func Whereabouts(fd int) (space netns.NsHandle, name string, err error) {
	r, err := unix.NewIfreq("")
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.TUNGETIFF, r)
	}
	if err != nil {
		return -1, "", os.NewSyscallError("TUNGETIFF", err)
	}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNGETDEVNETNS, 0)
	if errno != 0 {
		return -1, "", os.NewSyscallError("TUNGETDEVNETNS", errno)
	}
	return netns.NsHandle(n), r.Name(), nil
}
