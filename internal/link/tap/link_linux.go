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
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// receiveMost is how many frames one Receive takes. Each takes a system call.
	receiveMost = 64
	// extra is what is before an IP packet: a virtio header, and an Ethernet header with a VLAN tag.
	extra = offload.TunnelHeaderLen + eth.EthernetLen + eth.VLANLen
	// pieces are a virtio header, and what a frame.Out consists of: its headers, its payload, pad and ICRC.
	pieces = 4
	// largest is what the largest frame of the system takes, and one byte to see that it is too long; largeMost of them have room.
	largest, largeMost = extra + offload.MaxPacket + 1, 4
	// undone are the flags of TUNSETOFFLOAD for what the system may leave undone: checksums, and segments of TCP. UDP may be RoCE.
	undone = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
)

type tapLink struct {
	*station.Set
	caps    link.Capabilities
	name    string
	index   int // of the interface
	fd      int
	ask     *netlink.Handle // in the namespace of the interface
	news    *station.News
	alarm   *station.Alarm
	each    func(*frame.Out) station.Outcome // writev; made once, since making it allocates
	vector  [pieces]unix.Iovec
	header  [offload.TunnelHeaderLen]byte // of the frame that is sent
	tunnels bool                          // the system takes and leaves large frames in tunnels over UDP
	before  int                           // bytes of virtio headers
	parts   station.Parts                 // of one that it does not take
	memory  []byte                        // of the frames of a Receive, one behind the other
	slot    int                           // bytes that a frame may have, one more than the longest has
	large   bool                          // somebody takes large frames
	cut     station.Cutter                // for those who do not
	state   link.State
	away    bool // the interface is not where news of it come from
	deleted bool // the interface was deleted
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
	if l.before = offload.HeaderLen; tun.Tunnels(l.fd) {
		l.tunnels, l.before = true, offload.TunnelHeaderLen
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
	l.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: mtu, Stations: l, Multicaster: l, Resolver: l, Large: true, Carrier: l}
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

// grow makes room for frames with packets of up to mtu bytes, and for large ones once there may be any.
func (l *tapLink) grow(mtu int) {
	l.cut.Grow(mtu)
	slot := mtu + extra + 1
	room := receiveMost * slot
	if l.large {
		slot = largest
		room = max(room, largeMost*largest)
	}
	l.slot = max(l.slot, slot)
	if room > len(l.memory) {
		l.memory = make([]byte, room)
	}
}

// Listen implements link.Stations.
func (l *tapLink) Listen(mac [6]byte, large bool) error {
	err := l.Set.Listen(mac, large)
	l.offer()
	return err
}

// Unlisten implements link.Stations.
func (l *tapLink) Unlisten(mac [6]byte) error {
	err := l.Set.Unlisten(mac)
	l.offer()
	return err
}

// offer lets the system leave frames undone while somebody takes them so. What it has left undone before is done here.
func (l *tapLink) offer() {
	large := l.ListenedLarge()
	if large == l.large || l.Ended() {
		return
	}
	flags := 0
	if large {
		if flags = undone; l.tunnels {
			flags |= tun.TunnelFlags
		}
	}
	if unix.IoctlSetInt(l.fd, unix.TUNSETOFFLOAD, flags) == nil || !large { // else it finishes all frames itself, as before
		l.large = large
		l.grow(l.caps.MTU)
	}
}

// survey adapts the link to changes of the interface.
func (l *tapLink) survey() {
	i, err := l.ask.LinkByIndex(l.index)
	if l.away = err != nil; l.away {
		l.state, l.deleted = link.State{Up: tun.Up(l.fd)}, tun.Deleted(l.fd)
		return
	}
	if l.state = stateOf(i.Attrs()); i.Attrs().MTU == l.caps.MTU {
		return
	}
	l.caps.MTU = i.Attrs().MTU
	l.grow(l.caps.MTU)
	l.SetMTU(l.caps.MTU)
}

// nothing is the virtio header of a complete frame.
var nothing [offload.TunnelHeaderLen]byte

// write sends a whole frame. What the interface does not take is lost.
func (l *tapLink) write(f []byte) {
	var v [2]unix.Iovec
	for i, p := range [...][]byte{nothing[:l.before], f} {
		v[i].Base = &p[0]
		v[i].SetLen(len(p))
	}
	_, _, _ = unix.RawSyscall(unix.SYS_WRITEV, uintptr(l.fd), uintptr(unsafe.Pointer(&v)), uintptr(len(v)))
}

// Name implements Link.
func (l *tapLink) Name() string { return l.name }

// Capabilities implements link.Link.
func (l *tapLink) Capabilities() link.Capabilities { return l.caps }

// Send implements link.Link.
func (l *tapLink) Send(frames []frame.Out) (int, error) { return l.SendEach(frames, l.each) }

// writev sends a frame.
func (l *tapLink) writev(o *frame.Out) station.Outcome {
	head := o.Head[o.HeadStart:o.HeadEnd]
	l.header = nothing
	if o.Task != (offload.Task{}) {
		h, ok := o.Task.HeaderOf(head)
		switch {
		case o.Task.Kind.InTunnel() && !(ok && l.tunnels):
			return l.split(o)
		case !ok:
			return station.Lost
		}
		h.PutTunnel(l.header[:])
	}
	return l.gather(head, o.Payload, o.Tail[:o.TailLen])
}

// split sends a large frame in a tunnel that the system does not take as the frames that it stands for. If there is no more room the
// rest is lost, as it is at any full queue.
func (l *tapLink) split(o *frame.Out) station.Outcome {
	if !l.parts.Begin(o) {
		return station.Lost
	}
	for head, body, ok := l.parts.Next(); ok; head, body, ok = l.parts.Next() {
		if l.gather(head, body, nil) != station.Gone {
			l.Counted().SendErrors++
		}
	}
	return station.Gone
}

// gather sends a frame in pieces, with the virtio header.
func (l *tapLink) gather(head, body, tail []byte) station.Outcome {
	n := 0
	for _, p := range [pieces][]byte{l.header[:l.before], head, body, tail} {
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
	l.cut.Reuse()
	if l.cut.Cutting() { // the frame is in memory
		return n + l.cut.Hand(l.Set, in[n:]), nil
	}
	for i, used := 0, 0; i < receiveMost && n < len(in) && len(l.memory)-used >= l.slot; i++ {
		room := l.memory[used : used+l.slot]
		got, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(l.fd), uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			break // EAGAIN, or the interface is down
		}
		used += int(got)
		if n += l.take(in[n:], room[:got:got], int(got) < len(room)); l.cut.Cutting() {
			break
		}
	}
	return n, nil
}

// take hands up a frame that was read. whole is false if there was room for its beginning only.
func (l *tapLink) take(in []frame.In, b []byte, whole bool) int {
	parse := offload.ParseHeader
	if l.tunnels {
		parse = offload.ParseTunnelHeader
	}
	h, f, err := parse(b)
	switch {
	case err != nil || !whole:
		l.Counted().ReceiveTruncated++
		return 0
	case len(f) < eth.EthernetLen:
		l.Counted().ReceiveUndersize++
		return 0
	}
	if h.Kind == offload.Whole || h.Kind != offload.UDP && l.HearsLarge(f) {
		t, ok := offload.Task{}, len(f) <= l.caps.MTU+eth.EthernetLen+eth.VLANLen || h.Kind != offload.Whole
		if ok && (h != offload.Header{}) {
			t, ok = l.Undone(h, f)
		}
		return l.Take(in, f, t, ok)
	}
	if !l.Wants(f) {
		return 0
	}
	l.cut.Begin(l.Set, h, f)
	return l.cut.Hand(l.Set, in)
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

// Descriptors implements link.Link. That of an interface that was deleted is in error for ever: nobody must sleep on it.
func (l *tapLink) Descriptors() []int {
	if l.deleted {
		return []int{l.news.Descriptor(), l.alarm.Descriptor()}
	}
	return []int{l.fd, l.news.Descriptor(), l.alarm.Descriptor()}
}

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
