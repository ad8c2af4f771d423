package tap

import (
	"fmt"
	"net"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/tun"
)

const (
	// receiveMost is how many frames one Receive takes. Each takes a system call.
	receiveMost = 64
	// extra is what a frame has before its IP packet: an Ethernet header with a VLAN tag.
	extra = 18
	// pieces are what a frame.Out consists of: its headers, its payload, pad and ICRC.
	pieces = 3
)

type tapLink struct {
	*station.Set
	caps   link.Capabilities
	name   string
	index  int // of the interface
	fd     int
	ask    *netlink.Handle // in the namespace of the interface
	news   *station.News
	alarm  *station.Alarm
	each   func(*frame.Out) station.Outcome // writev; made once, since making it allocates
	vector [pieces]unix.Iovec
	memory []byte
	slot   int // bytes of memory for a frame, one more than the longest has
	state  link.State
	away   bool // the interface is not where news of it come from
}

func open(cfg Config) (Link, error) {
	l := &tapLink{fd: -1}
	l.each = l.writev
	if err := l.open(&cfg); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *tapLink) open(cfg *Config) (err error) {
	if l.fd, l.name, err = tun.OpenTAP(cfg.Name); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if l.ask, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("%s: netlink: %w", name, err)
	}
	if l.news, err = station.Subscribe(unix.RTNLGRP_LINK); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	mtu, err := l.configure(cfg)
	if err != nil {
		return fmt.Errorf("%s: interface %q: %w", name, l.name, err)
	}
	if l.alarm, err = station.NewAlarm(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l.grow(mtu)
	l.Set = station.New(station.Config{Name: name, Wire: l.write, MTU: mtu, Promiscuous: cfg.Promiscuous, Arm: l.alarm.Arm})
	l.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: mtu, Stations: l, Multicaster: l, Resolver: l, Carrier: l}
	for _, s := range cfg.Stations {
		if err := l.SetStation(s); err != nil {
			return err
		}
	}
	return nil
}

// configure sets up the interface, and returns its MTU.
func (l *tapLink) configure(cfg *Config) (mtu int, err error) {
	i, err := l.ask.LinkByName(l.name)
	if err != nil {
		return 0, err
	}
	l.index = i.Attrs().Index
	if cfg.MTU != 0 {
		if err := l.ask.LinkSetMTU(i, cfg.MTU); err != nil {
			return 0, fmt.Errorf("MTU %d: %w", cfg.MTU, err)
		}
	}
	if cfg.Up {
		if err := l.ask.LinkSetUp(i); err != nil {
			return 0, err
		}
	}
	if mtu = cfg.MTU; mtu == 0 {
		mtu = i.Attrs().MTU
	}
	if i, err = l.ask.LinkByIndex(l.index); err != nil { // it may be up now
		return 0, err
	}
	l.state = stateOf(i.Attrs())
	return mtu, nil
}

// stateOf returns the state of the interface, whose carrier this side is. What it says of its speed is a constant.
func stateOf(a *netlink.LinkAttrs) link.State { return link.State{Up: a.RawFlags&unix.IFF_UP != 0} }

// WireState implements link.Carrier.
func (l *tapLink) WireState() link.State { return l.state }

// grow makes room for frames with packets of up to mtu bytes.
func (l *tapLink) grow(mtu int) {
	if slot := mtu + extra + 1; slot > l.slot {
		l.slot, l.memory = slot, make([]byte, receiveMost*slot)
	}
}

// survey adapts the link to changes of the interface.
func (l *tapLink) survey() {
	i, err := l.ask.LinkByIndex(l.index)
	if l.away = err != nil; l.away {
		l.state = link.State{Up: tun.Up(l.fd)}
		return
	}
	if l.state = stateOf(i.Attrs()); i.Attrs().MTU == l.caps.MTU {
		return
	}
	l.caps.MTU = i.Attrs().MTU
	l.grow(l.caps.MTU)
	l.SetMTU(l.caps.MTU)
}

// write sends a whole frame. What the interface does not take is lost.
func (l *tapLink) write(f []byte) {
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(l.fd), uintptr(unsafe.Pointer(&f[0])), uintptr(len(f)))
}

// Name implements Link.
func (l *tapLink) Name() string { return l.name }

// Capabilities implements link.Link.
func (l *tapLink) Capabilities() link.Capabilities { return l.caps }

// Send implements link.Link.
func (l *tapLink) Send(frames []frame.Out) (int, error) { return l.SendEach(frames, l.each) }

// writev sends a frame.
func (l *tapLink) writev(o *frame.Out) station.Outcome {
	n := 0
	for _, p := range [pieces][]byte{o.Head[o.HeadStart:o.HeadEnd], o.Payload, o.Tail[:o.TailLen]} {
		if len(p) > 0 {
			l.vector[n].Base = &p[0]
			l.vector[n].SetLen(len(p))
			n++
		}
	}
	defer clear(l.vector[:])
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(l.fd), uintptr(unsafe.Pointer(&l.vector)), uintptr(n))
		switch errno {
		case 0:
			return station.Gone
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			return station.Blocked
		default:
			return station.Lost
		}
	}
}

// Receive implements link.Link.
func (l *tapLink) Receive(in []frame.In) (int, error) {
	if l.Ended() {
		return 0, net.ErrClosed
	}
	n := l.Looped(in)
	for i := 0; i < receiveMost && n < len(in); i++ {
		slot := l.memory[i*l.slot : (i+1)*l.slot : (i+1)*l.slot]
		got, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(l.fd), uintptr(unsafe.Pointer(&slot[0])), uintptr(len(slot)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			break // EAGAIN, or the interface is down
		}
		n += l.Take(in[n:], slot[:got], offload.Task{}, int(got) < len(slot))
	}
	return n, nil
}

// Errors implements link.Link. It also follows changes of the interface.
func (l *tapLink) Errors(out []link.Unreachable) int {
	if l.Ended() {
		return 0
	}
	l.alarm.Hush()
	if l.news.Follow().Interfaces || l.away {
		l.survey()
	}
	l.Tend(false)
	return l.Set.Errors(out)
}

// Descriptors implements link.Link.
func (l *tapLink) Descriptors() []int { return []int{l.fd, l.news.Descriptor(), l.alarm.Descriptor()} }

// Close implements link.Link. It removes an interface that was not made to stay.
func (l *tapLink) Close() error {
	if l.End() {
		l.release()
	}
	return nil
}

func (l *tapLink) release() {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	if l.ask != nil {
		l.ask.Close()
	}
	if l.news != nil {
		l.news.Close()
	}
	if l.alarm != nil {
		l.alarm.Close()
	}
}
