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

// Device is an interface. Its methods may be called concurrently.
type Device struct {
	file *os.File
	raw  syscall.RawConn
	name string

	mu sync.RWMutex // read-locked to use at, locked to change it
	at *site

	done chan struct{}
	once sync.Once

	writing sync.Mutex // guards the following fields
	write   func(fd uintptr) bool
	header  [offload.HeaderLen]byte
	vector  [1 + maxPieces]unix.Iovec
	pieces  int
	failed  error
}

// Open creates an interface, down and without addresses. It is in the network namespace of the calling
// thread, and is removed by Close or at the end of the process. For an empty name the system chooses one
// that begins with "ib".
func Open(name string) (*Device, error) {
	wanted := name
	if wanted == "" {
		wanted = "ib%d"
	}
	fd, name, err := attach(wanted, unix.IFF_TUN|unix.IFF_NO_PI|unix.IFF_VNET_HDR)
	if err != nil {
		return nil, err
	}
	d := &Device{done: make(chan struct{}), name: name}
	if err := d.locate(); err != nil {
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

// attach opens an interface, which it makes if there is none of that name.
func attach(wanted string, flags uint16) (fd int, name string, err error) {
	if len(wanted) > MaxName {
		return -1, "", fmt.Errorf("interface name %q is %d bytes, want at most %d", wanted, len(wanted), MaxName)
	}
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, "", &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	r, err := unix.NewIfreq(wanted)
	if err != nil {
		unix.Close(fd)
		return -1, "", fmt.Errorf("interface name %q: %w", wanted, err)
	}
	r.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		unix.Close(fd)
		return -1, "", fmt.Errorf("interface %q: %w", wanted, os.NewSyscallError("TUNSETIFF", err))
	}
	return fd, r.Name(), nil
}

// locate finds the interface in the namespace of the calling thread.
func (d *Device) locate() error {
	space, err := netns.Get()
	if err != nil {
		return fmt.Errorf("interface %q: network namespace: %w", d.name, err)
	}
	d.at, err = newSite(space, d.name)
	return err
}

// follow updates the location of the interface.
func (d *Device) follow() error {
	var space netns.NsHandle
	var name string
	var failed error
	err := d.raw.Control(func(fd uintptr) { space, name, failed = Whereabouts(int(fd)) })
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	at, err := newSite(space, name)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.done: // Close has closed d.at, or is about to
		at.close()
		return os.ErrClosed
	default:
	}
	d.at.close()
	d.at = at
	return nil
}

// Name returns the interface's original name.
func (d *Device) Name() string { return d.name }

// Location returns where the interface is; the error is os.ErrClosed, or the system's.
func (d *Device) Location() (Location, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	select {
	case <-d.done:
		return Location{}, os.ErrClosed
	default:
	}
	var space unix.Stat_t
	if err := unix.Fstat(int(d.at.space), &space); err != nil {
		return Location{}, fmt.Errorf("interface %q: network namespace: %w", d.name, err)
	}
	l, err := d.at.ask.LinkByIndex(d.at.index)
	if err != nil {
		return Location{}, fmt.Errorf("interface %q: %w", d.name, err)
	}
	return Location{l.Attrs().Name, d.at.index, space.Ino}, nil
}

// Each passes every packet that the system sends to take, one after the other, until Close. take must not
// retain the packet. idle is called before waiting. Malformed packets are skipped. The error is
// os.ErrClosed, or the system's.
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

// Write hands the system a packet in pieces, of which there may be maxPieces. The error is of the system, which takes
// nothing while the interface is down.
func (d *Device) Write(h offload.Header, pieces [][]byte) error {
	if len(pieces) > maxPieces {
		return fmt.Errorf("interface %q: a packet in %d pieces, want at most %d", d.name, len(pieces), maxPieces)
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

// writev writes the vector, and records the system's error.
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

// SetOffloads sets what the system may leave undone in packets that it sends. Large packets require the
// checksum.
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
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.at.ask.LinkSetGSOMaxSize(d.at.link(), o.LargeSize); err != nil {
		return fmt.Errorf("interface %q: large packets of %d bytes: %w", d.name, o.LargeSize, err)
	}
	return nil
}

// Close removes the interface and ends Each.
func (d *Device) Close() (err error) {
	d.once.Do(func() {
		close(d.done)
		err = d.file.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.at.close()
	})
	return err
}

// SetMTU sets the interface's MTU.
func (d *Device) SetMTU(n int) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.at.ask.LinkSetMTU(d.at.link(), n); err != nil {
		return fmt.Errorf("interface %q: MTU %d: %w", d.name, n, err)
	}
	return nil
}

// SetCarrier sets the carrier state, which ip(8) shows as LOWER_UP.
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

// Settings returns the interface's current settings.
func (d *Device) Settings() (s Settings, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	l, err := d.at.ask.LinkByIndex(d.at.index)
	if err != nil {
		return s, fmt.Errorf("interface %q: %w", d.name, err)
	}
	s.Up = l.Attrs().Flags&net.FlagUp != 0
	addrs, err := d.at.ask.AddrList(d.at.link(), netlink.FAMILY_ALL)
	if err != nil {
		return s, fmt.Errorf("interface %q: addresses: %w", d.name, err)
	}
	for _, a := range addrs {
		if p, ok := prefixOf(a.IPNet); ok {
			s.Prefixes = append(s.Prefixes, p)
		}
	}
	routes, err := d.at.ask.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{LinkIndex: d.at.index}, netlink.RT_FILTER_OIF)
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
