package device

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/gid"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/wire/ib"
)

// maxOverhead is the most that stands around a payload in an IP packet: IPv6 and
// UDP or GRH headers, BTH and AtomicETH or RETH and ImmDt, ICRC.
const maxOverhead = 40 + 8 + 12 + 28 + 4

// plug is one address of a port with the link that serves it.
type plug struct {
	addr   netip.Addr
	link   link.Link // base with the impairments; nil while the adapter is disabled
	base   link.Link
	impair *impair.Link
	shown  *capture.Link // between base and impair
	encap  *encap.Encap
	placer link.Placer // base, where it can
	own    bool        // the adapter opened the link
	failed bool
}

// open plugs the port in: the first address must work, the others should.
func (a *adapter) open(addrs []netip.Addr) error {
	l, own := a.cfg.Link, false
	if l == nil {
		var err error
		if l, err = a.openUDP(a.cfg.Addr); err != nil {
			return err
		}
		own = true
	}
	if err := a.setMTU(l.Capabilities().MTU); err != nil {
		if own {
			_ = l.Close()
		}
		return err
	}
	p, err := a.newPlug(a.cfg.Addr, l, own)
	if err != nil {
		return err
	}
	a.plugs = []*plug{p}
	a.setGIDs(a.replug(addrs))
	return nil
}

func (a *adapter) openUDP(addr netip.Addr) (link.Link, error) {
	l, err := udp.Open(udp.Config{
		Addr: addr, Port: a.cfg.UDPPort, SourcePorts: a.cfg.SourcePorts, ReceiveBuffer: a.cfg.ReceiveBuffer, Notify: a.host.Wake,
		Frames: a.cfg.Frames,
	})
	if err == nil {
		return l, nil
	}
	var field *udp.FieldError
	code := command.Internal
	switch {
	case errors.As(err, &field):
		code = command.Invalid
	case errors.Is(err, syscall.EADDRINUSE):
		code = command.InUse
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		code = command.AddrNotAvailable
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		code = command.Exhausted
	}
	return nil, &command.Error{Code: code, Detail: err.Error()}
}

// setMTU derives the largest payload of the port from the link's MTU.
func (a *adapter) setMTU(of int) error {
	if a.ib != nil {
		m := a.ib.Settings().MTU
		if !m.Valid() { // nothing is connected
			m, _ = ib.MTUFor(max(of, ib.MTU256.Bytes()))
		}
		a.linkMTU, a.ipMTU, a.mtu = uint32(of), uint32(of), uint32(m.Bytes())
		return nil
	}
	ip := a.cfg.ipMTU(of)
	a.linkMTU, a.ipMTU = uint32(of), uint32(ip)
	m, ok := ib.MTUFor(ip - maxOverhead)
	if !ok {
		return command.Errorf(command.Invalid, "Link: an MTU of %d carries no payload of 256 bytes", ip)
	}
	a.mtu = uint32(m.Bytes())
	if want := a.cfg.RoceMaxFrameSize; want > a.mtu {
		return command.Errorf(command.Invalid, "RoceMaxFrameSize is %d, want at most %d with a link MTU of %d", want, a.mtu, ip)
	} else if want != 0 {
		a.mtu = want
	}
	return nil
}

// ipMTU is the largest IP packet of a port whose link's is this.
func (c *AdapterConfig) ipMTU(link int) int {
	if c.MTU == 0 {
		return link
	}
	return min(link, int(c.MTU))
}

// newPlug puts an encapsulation and the adapter's taps and impairment on a link.
func (a *adapter) newPlug(addr netip.Addr, l link.Link, own bool) (*plug, error) {
	e, err := encap.New(encap.Mode(a.cfg.RoCE), a.gidAddrs(addr), l.Capabilities(), a.cfg.UDPPort)
	if err != nil {
		return nil, command.Errorf(command.Unsupported, "%v", err)
	}
	if a.ib != nil {
		e.SetPort(a.ib.Settings())
	}
	c := capture.New(l, addr, a.cfg.UDPPort, time.Now)
	c.SetTaps(a.taps)
	i := impair.New(c, a.impairment, a.host.now)
	placer, _ := l.(link.Placer)
	return &plug{addr: addr, own: own, base: l, link: i, impair: i, shown: c, placer: placer, encap: e}, nil
}

// gidAddrs are the addresses in packets through the plug of addr.
func (a *adapter) gidAddrs(addr netip.Addr) []netip.Addr {
	if a.ib != nil {
		return a.ib.GIDs()
	}
	if a.cfg.RoCE == RoCEv1 {
		return []netip.Addr{gid.FromMAC(a.mac)}
	}
	return []netip.Addr{addr}
}

// plugFor returns the plug of a source address.
func (a *adapter) plugFor(src netip.Addr) *plug {
	if a.ib != nil && len(a.plugs) > 0 {
		return a.plugs[0] // which carries all of its LIDs
	}
	for _, p := range a.plugs {
		if p.addr == src {
			return p
		}
	}
	return nil
}

// replug opens links for new addresses of the port and closes those of addresses
// that are gone. It returns the addresses that are served.
func (a *adapter) replug(want []netip.Addr) []netip.Addr {
	if a.cfg.Link != nil { // a link that was given serves its own address
		if slices.Contains(want, a.cfg.Addr) {
			return []netip.Addr{a.cfg.Addr}
		}
		return nil
	}
	kept := a.plugs[:1]
	for _, p := range a.plugs[1:] {
		if slices.Contains(want, p.addr) {
			kept = append(kept, p)
			continue
		}
		a.host.log.Info("address is gone", "adapter", a.name, "address", p.addr)
		a.retire(p)
		_ = p.link.Close()
		clear(a.gsi.routes) // they name the sockets of the link
	}
	clear(a.plugs[len(kept):])
	a.plugs = kept
	var served []netip.Addr
	for _, addr := range want {
		if a.plugFor(addr) == nil {
			l, err := a.openUDP(addr)
			if err != nil {
				a.host.log.Warn("address left out of the GID table", "adapter", a.name, "address", addr, "cause", err)
				continue
			}
			p, err := a.newPlug(addr, l, true)
			if err != nil {
				_ = l.Close()
				continue
			}
			a.plugs = append(a.plugs, p)
		}
		served = append(served, addr)
	}
	a.host.watched++
	a.host.sleep.wake()
	return served
}

// unplug takes the links away while the adapter is disabled. A link that was
// given stays open; what arrives on it is dropped.
func (a *adapter) unplug() {
	for _, p := range a.plugs {
		if p.own && p.link != nil {
			a.retire(p)
			_ = p.link.Close()
			p.link, p.base, p.impair, p.shown = nil, nil, nil, nil
		}
	}
	clear(a.gsi.routes) // they name the sockets of the links
	a.gsi.beside = a.gsi.beside[:0]
	a.sent, a.queued, a.keep.on = 0, 0, false
	a.host.watched++
	a.host.sleep.wake()
}

// plugAgain opens the links again.
func (a *adapter) plugAgain() error {
	for _, p := range a.plugs {
		if p.link != nil {
			continue
		}
		l, err := a.openUDP(p.addr)
		if err != nil {
			return err
		}
		q, err := a.newPlug(p.addr, l, true)
		if err != nil {
			_ = l.Close()
			return err
		}
		*p = *q
	}
	a.host.watched++
	a.host.sleep.wake()
	return nil
}

// overlaps reports whether p lies in mem.
func overlaps(p, mem []byte) bool {
	if len(p) == 0 {
		return false
	}
	at, from := uintptr(unsafe.Pointer(&p[0])), uintptr(unsafe.Pointer(&mem[0]))
	return at >= from && at < from+uintptr(len(mem))
}

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// rand8 makes random key tags.
func rand8(seed uint64) func() uint8 {
	return func() uint8 { // xorshift64*
		seed ^= seed >> 12
		seed ^= seed << 25
		seed ^= seed >> 27
		return uint8(seed * 0x2545f4914f6cdd1d >> 56)
	}
}
