package hostside

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/tun"
	"github.com/softvpi/softvpi/wire/eth"
)

// mark makes an interface that was made here stay, with a mark for the next driver.
func (e *tapEnd) mark() error {
	if len(e.fds) == 0 {
		return nil // which was said
	}
	e.made = true
	i, err := e.ask.LinkByName(e.name)
	if err == nil {
		err = e.ask.LinkSetAlias(i, mark)
	}
	if err == nil {
		err = unix.IoctlSetInt(e.fds[0], unix.TUNSETPERSIST, 1)
	}
	if err != nil {
		return fmt.Errorf("host: interface %q: %w", e.name, err)
	}
	return nil
}

// locate finds the interface where it is now: it may have been moved to another network namespace, and renamed. Where the system
// does not say, or not to everybody, that is where it was.
func (e *tapEnd) locate() (netlink.Link, error) {
	space, name, err := tun.Whereabouts(e.fds[0])
	if err != nil {
		return e.ask.LinkByName(e.name)
	}
	defer space.Close()
	ask, err := netlink.NewHandleAt(space, unix.NETLINK_ROUTE)
	if err != nil {
		return e.ask.LinkByName(e.name)
	}
	e.ask.Close()
	e.ask = ask
	return ask.LinkByName(name)
}

// Set implements End.
func (e *tapEnd) Set(mac eth.MAC, mtu int) error {
	i, err := e.locate()
	if err != nil {
		return fmt.Errorf("host: interface %q: %w", e.name, err)
	}
	a := i.Attrs()
	if string(a.HardwareAddr) != string(mac[:]) {
		if err := e.ask.LinkSetHardwareAddr(i, mac[:]); err != nil {
			return fmt.Errorf("host: interface %q has the address %v, and cannot have that of the adapter, %v: %w", e.name, a.HardwareAddr, mac, err)
		}
	}
	if a.MTU != mtu {
		if err := e.ask.LinkSetMTU(i, mtu); err != nil && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("host: interface %q: MTU %d: %w", e.name, mtu, err)
		}
	}
	if err := e.ask.LinkSetUp(i); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("host: interface %q: %w", e.name, err)
	}
	return nil
}

// bursts are the flags of TUNSETOFFLOAD for bursts of UDP datagrams, which the system has together only.
const bursts = unix.TUN_F_USO4 | unix.TUN_F_USO6

// Offer implements End.
func (e *tapEnd) Offer(o Offloads) error {
	flags := 0
	if o.Checksums {
		flags |= unix.TUN_F_CSUM
		if o.Large4 {
			flags |= unix.TUN_F_TSO4
		}
		if o.Large6 {
			flags |= unix.TUN_F_TSO6
		}
		if o.Datagrams {
			flags |= bursts
		}
		if o.Tunnels {
			flags |= tun.TunnelFlags
		}
	}
	if err := unix.IoctlSetInt(e.fds[0], unix.TUNSETOFFLOAD, flags); err != nil {
		return fmt.Errorf("host: interface %q: %w", e.name, os.NewSyscallError("TUNSETOFFLOAD", err))
	}
	if flags&(unix.TUN_F_TSO4|unix.TUN_F_TSO6) == 0 || o.LargeSize == 0 {
		return nil
	}
	i, err := e.locate()
	if err == nil {
		err = e.ask.LinkSetGSOMaxSize(i, o.LargeSize)
	}
	if err != nil && !errors.Is(err, unix.EPERM) { // larger ones are cut here
		return fmt.Errorf("host: interface %q: large packets of %d bytes: %w", e.name, o.LargeSize, err)
	}
	return nil
}

// SetLink implements End.
func (e *tapEnd) SetLink(up bool) {
	if len(e.fds) == 0 {
		return
	}
	v := 0
	if up {
		v = 1
	}
	_ = unix.IoctlSetPointerInt(e.fds[0], unix.TUNSETCARRIER, v) // of systems without it the carrier is always there
}

// Addresses implements Addressed.
func (e *tapEnd) Addresses() (list []netip.Prefix, err error) {
	if !e.made || len(e.fds) == 0 || e.gone {
		return nil, nil
	}
	space, name, err := tun.Whereabouts(e.fds[0])
	if err != nil {
		return nil, nil // which the system does not say to everybody
	}
	defer space.Close()
	here, err := netns.Get()
	if err != nil {
		return nil, err
	}
	defer here.Close()
	if !here.Equal(space) {
		return nil, nil
	}
	i, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	all, err := netlink.AddrList(i, netlink.FAMILY_ALL)
	for _, a := range all {
		addr, ok := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		if addr = addr.Unmap(); ok && !addr.IsLinkLocalUnicast() && a.Flags&unix.IFA_F_PERMANENT != 0 {
			list = append(list, netip.PrefixFrom(addr, bits))
		}
	}
	return list, err
}

// Readdress implements Addressed.
func (e *tapEnd) Readdress(list []netip.Prefix) error {
	if !e.fresh || len(list) == 0 {
		return nil
	}
	i, err := e.ask.LinkByName(e.name)
	if err != nil {
		return fmt.Errorf("host: interface %q: %w", e.name, err)
	}
	var failed []error
	for _, p := range list {
		a, err := netlink.ParseAddr(p.String())
		if err == nil {
			err = e.ask.AddrReplace(i, a)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("host: interface %q: address %v: %w", e.name, p, err))
		}
	}
	return errors.Join(failed...)
}
