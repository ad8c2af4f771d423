package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/offload"
)

// Device is an interface. Its methods may be called at once.
type Device struct {
	file  *os.File
	raw   syscall.RawConn
	name  string
	index int
	ask   *netlink.Handle
	space netns.NsHandle

	done chan struct{}
	once sync.Once

	writing sync.Mutex // of the rest
	write   func(fd uintptr) bool
	header  [offload.HeaderLen]byte
	vector  [1 + MaxPieces]unix.Iovec
	pieces  int
	failed  error
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
	d.write = d.writev
	if d.raw, err = d.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// make turns an open descriptor into an interface.
func (d *Device) make(fd int, name string) error {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("interface name %q: %w", name, err)
	}
	r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
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

// Each gives take every packet that the system sends, one after the other, until Close. The packet's memory is the caller's again when take returns.
// idle is called before it waits. Packets that are not what they say they are are passed over. The error is os.ErrClosed, or of the system.
func (d *Device) Each(take func(h offload.Header, packet []byte), idle func()) error {
	buffer := make([]byte, offload.HeaderLen+offload.MaxPacket+1)
	var failed error
	err := d.raw.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Read(int(fd), buffer)
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				idle()
				return false
			case err != nil:
				failed = os.NewSyscallError("read", err)
				return true
			}
			if h, packet, err := offload.ParseHeader(buffer[:n]); err == nil {
				take(h, packet)
			}
			select {
			case <-d.done:
				return true
			default:
			}
		}
	})
	select {
	case <-d.done:
		return os.ErrClosed
	default:
		return errors.Join(err, failed)
	}
}

// Write hands the system a packet in pieces, of which there may be MaxPieces. The error is of the system, which takes nothing while the interface is down.
func (d *Device) Write(h offload.Header, pieces [][]byte) error {
	if len(pieces) > MaxPieces {
		return fmt.Errorf("interface %q: a packet in %d pieces, want at most %d", d.name, len(pieces), MaxPieces)
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	h.Put(d.header[:])
	d.vector[0].Base = &d.header[0]
	d.vector[0].SetLen(len(d.header))
	n := 1
	for _, p := range pieces {
		if len(p) > 0 {
			d.vector[n].Base = &p[0]
			d.vector[n].SetLen(len(p))
			n++
		}
	}
	d.pieces = n
	err := d.raw.Write(d.write)
	clear(d.vector[:n])
	if err != nil {
		return err
	}
	return d.failed
}

// writev writes the vector, and notes what the system says.
func (d *Device) writev(fd uintptr) bool {
	for {
		_, _, e := unix.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&d.vector[0])), uintptr(d.pieces))
		switch e {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		case 0:
			d.failed = nil
		default:
			d.failed = os.NewSyscallError("writev", e)
		}
		return true
	}
}

// SetOffloads says what the system may leave to be done to packets that it sends. Large packets need the checksum.
func (d *Device) SetOffloads(o Offloads) error {
	flags := 0
	if o.Checksum {
		flags |= unix.TUN_F_CSUM
		if o.Large4 {
			flags |= unix.TUN_F_TSO4
		}
		if o.Large6 {
			flags |= unix.TUN_F_TSO6
		}
	}
	var failed error
	if err := d.raw.Control(func(fd uintptr) { failed = unix.IoctlSetInt(int(fd), unix.TUNSETOFFLOAD, flags) }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("interface %q: %w", d.name, os.NewSyscallError("TUNSETOFFLOAD", failed))
	}
	if flags&(unix.TUN_F_TSO4|unix.TUN_F_TSO6) == 0 || o.LargeSize == 0 {
		return nil
	}
	if err := d.ask.LinkSetGSOMaxSize(d.link(), o.LargeSize); err != nil {
		return fmt.Errorf("interface %q: large packets of %d bytes: %w", d.name, o.LargeSize, err)
	}
	return nil
}

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
	var failed error
	if err := d.raw.Control(func(fd uintptr) { failed = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, v) }); err != nil {
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
