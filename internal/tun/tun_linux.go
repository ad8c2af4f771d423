package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Device is an interface. ReadBatch and Write may be called at once.
type Device struct {
	file  *os.File
	name  string
	index int
	ask   *netlink.Handle
	space netns.NsHandle

	done chan struct{}
	once sync.Once
}

// Open makes an interface, down and without addresses. It stays in the network namespace of the calling thread, and is
// gone with Close, or with the process. An empty name lets the system choose one that begins with "ib".
func Open(name string) (*Device, error) {
	if len(name) > MaxName {
		return nil, fmt.Errorf("interface name %q is %d bytes, want at most %d", name, len(name), MaxName)
	}
	wanted := name
	if wanted == "" {
		wanted = "ib%d"
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	d := &Device{done: make(chan struct{})}
	if err := d.make(fd, wanted); err != nil {
		unix.Close(fd)
		return nil, err
	}
	d.file = os.NewFile(uintptr(fd), "/dev/net/tun")
	return d, nil
}

// make turns an open descriptor into an interface.
func (d *Device) make(fd int, name string) error {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("interface name %q: %w", name, err)
	}
	r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return fmt.Errorf("interface %q: %w", name, os.NewSyscallError("TUNSETIFF", err))
	}
	d.name = r.Name()
	if d.ask, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("interface %q: netlink: %w", d.name, err)
	}
	l, err := d.ask.LinkByName(d.name)
	if err != nil {
		d.ask.Close()
		return fmt.Errorf("interface %q: %w", d.name, err)
	}
	d.index = l.Attrs().Index
	if d.space, err = netns.Get(); err != nil {
		d.ask.Close()
		return fmt.Errorf("interface %q: network namespace: %w", d.name, err)
	}
	return nil
}

// Name is the interface's name when it was made.
func (d *Device) Name() string { return d.name }

// ReadBatch reads at least one packet and what else is there, one into each of the buffers, and returns their lengths in n, which has to be as
// long. It waits for the first.
func (d *Device) ReadBatch(b [][]byte, n []int) (count int, err error) {
	raw, err := d.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for count < len(b) {
			k, err := unix.Read(int(fd), b[count])
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				return count > 0
			case err != nil:
				failed = os.NewSyscallError("read", err)
				return true
			}
			n[count] = k
			count++
		}
		return true
	})
	if count > 0 {
		return count, nil
	}
	select {
	case <-d.done:
		return 0, os.ErrClosed
	default:
		return 0, errors.Join(err, failed)
	}
}

// Write hands the system a packet.
func (d *Device) Write(b []byte) (int, error) { return d.file.Write(b) }

// Close removes the interface. A ReadBatch that waits ends.
func (d *Device) Close() (err error) {
	d.once.Do(func() {
		close(d.done)
		err = d.file.Close()
		d.ask.Close()
		d.space.Close()
	})
	return err
}

func (d *Device) link() netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: d.index, Name: d.name}}
}

// SetMTU sets the interface's MTU.
func (d *Device) SetMTU(n int) error {
	if err := d.ask.LinkSetMTU(d.link(), n); err != nil {
		return fmt.Errorf("interface %q: MTU %d: %w", d.name, n, err)
	}
	return nil
}

// SetCarrier says whether packets flow, which ip(8) shows as LOWER_UP.
func (d *Device) SetCarrier(on bool) error {
	v := 0
	if on {
		v = 1
	}
	raw, err := d.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, v) }); err != nil {
		return err
	}
	return os.NewSyscallError("TUNSETCARRIER", failed)
}

// Settings asks what the interface's user has set.
func (d *Device) Settings() (s Settings, err error) {
	l, err := d.ask.LinkByIndex(d.index)
	if err != nil {
		return s, fmt.Errorf("interface %q: %w", d.name, err)
	}
	s.Up = l.Attrs().Flags&net.FlagUp != 0
	addrs, err := d.ask.AddrList(d.link(), netlink.FAMILY_ALL)
	if err != nil {
		return s, fmt.Errorf("interface %q: addresses: %w", d.name, err)
	}
	for _, a := range addrs {
		if p, ok := prefixOf(a.IPNet); ok {
			s.Prefixes = append(s.Prefixes, p)
		}
	}
	routes, err := d.ask.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{LinkIndex: d.index}, netlink.RT_FILTER_OIF)
	if err != nil {
		return s, fmt.Errorf("interface %q: routes: %w", d.name, err)
	}
	for _, r := range routes {
		via, ok := netip.AddrFromSlice(r.Gw)
		if !ok {
			continue
		}
		via = via.Unmap()
		p, ok := prefixOf(r.Dst)
		if !ok { // the default route
			if p = netip.PrefixFrom(netip.IPv6Unspecified(), 0); via.Is4() {
				p = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			}
		}
		s.Routes = append(s.Routes, Route{p, via})
	}
	return s, nil
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	bits, size := n.Mask.Size()
	if !ok || size == 0 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a.Unmap(), bits), true
}

// Watch calls changed, now and whenever what Settings tells may have changed, until Close.
func (d *Device) Watch(changed func()) error {
	addrs, routes, links := make(chan netlink.AddrUpdate, 16), make(chan netlink.RouteUpdate, 16), make(chan netlink.LinkUpdate, 16)
	err := errors.Join(
		netlink.AddrSubscribeWithOptions(addrs, d.done, netlink.AddrSubscribeOptions{Namespace: &d.space}),
		netlink.RouteSubscribeWithOptions(routes, d.done, netlink.RouteSubscribeOptions{Namespace: &d.space}),
		netlink.LinkSubscribeWithOptions(links, d.done, netlink.LinkSubscribeOptions{Namespace: &d.space}),
	)
	if err != nil {
		return fmt.Errorf("interface %q: netlink: %w", d.name, err)
	}
	go func() {
		changed()
		for addrs != nil || routes != nil || links != nil {
			mine := false
			select { // a channel is closed when its socket is
			case u, ok := <-addrs:
				if mine = ok && u.LinkIndex == d.index; !ok {
					addrs = nil
				}
			case u, ok := <-routes:
				if mine = ok && u.LinkIndex == d.index; !ok {
					routes = nil
				}
			case u, ok := <-links:
				if mine = ok && int(u.Index) == d.index; !ok {
					links = nil
				}
			}
			if mine {
				changed()
			}
		}
	}()
	return nil
}
