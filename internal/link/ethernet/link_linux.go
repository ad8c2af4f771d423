package ethernet

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/batch"
	"github.com/softvpi/softvpi/internal/link/ethtool"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/wire/eth"
)

type etherLink struct {
	*station.Set
	cfg      Config
	caps     link.Capabilities
	index    int
	mac      eth.MAC // of the interface
	fd       int     // receives
	outlet   int     // sends: the others' frames have a virtio header before them
	alarm    *station.Alarm
	stack    *stack
	receiver *receiver
	out      batch.Out
	wire     batch.Out // of the set
	large    largeOut
	parts    parts
	unicast  []eth.MAC // to which the interface listens for the link
	groups   []eth.MAC
	all      bool // it listens to all groups
	drops    uint64
	buffer   int
	state    link.State // of the interface
	gone     bool       // the interface was deleted, or moved away
}

func open(cfg Config) (link.Link, error) {
	l := &etherLink{cfg: cfg, fd: -1, outlet: -1, large: largeOut{fd: -1}}
	if err := l.open(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *etherLink) open() error {
	i, err := netlink.LinkByName(l.cfg.Interface)
	if err != nil {
		return fmt.Errorf("%s: interface %q: %w", name, l.cfg.Interface, err)
	}
	a := i.Attrs()
	if a.EncapType != "ether" {
		return bad("Interface", fmt.Sprintf("%q, which is %s", a.Name, a.EncapType), "an Ethernet interface")
	}
	l.index = a.Index
	copy(l.mac[:], a.HardwareAddr)
	if l.stack, err = openStack(a.Index); err != nil {
		return err
	}
	if l.alarm, err = station.NewAlarm(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l.Set = station.New(station.Config{Name: name, Wire: func(f []byte) { l.wire.One(l.outlet, f) }, System: l.stack, MTU: a.MTU,
		Promiscuous: l.cfg.Promiscuous, Arm: l.alarm.Arm})
	l.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: a.MTU, Stations: l, Multicaster: l, Resolver: l, Large: true, Carrier: l}
	l.receiver = newReceiver(a.MTU)
	if err := l.openSockets(); err != nil {
		return fmt.Errorf("%s: interface %q: %w", name, a.Name, err)
	}
	l.state = l.stateOf(a)
	for _, s := range l.cfg.Stations {
		if err := l.SetStation(s); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the state of the interface.
func (l *etherLink) stateOf(a *netlink.LinkAttrs) (s link.State) {
	s.Up = sends(a.RawFlags)
	s.Speed, s.HalfDuplex = ethtool.Speed(l.fd, a.Name)
	return s
}

// sends reports whether an interface with these flags sends. IFF_LOWER_UP is there with the carrier, but the system drops what is sent
// until IFF_RUNNING is, a moment later or up to a second (RFC 2863's operational state); when the carrier goes, that stays a moment longer.
func sends(flags uint32) bool {
	const all = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	return flags&all == all
}

// WireState implements link.Carrier.
func (l *etherLink) WireState() link.State { return l.state }

// nothing is the filter that drops everything.
var nothing = []bpf.Instruction{bpf.RetConstant{}}

func attach(fd int, program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, x := range raw {
		filter[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)),
		Filter: &filter[0]})
	return os.NewSyscallError("setsockopt SO_ATTACH_FILTER", err)
}

// openSockets opens the packet sockets. Only the one that receives is bound to a protocol.
func (l *etherLink) openSockets() (err error) {
	for _, fd := range []*int{&l.outlet, &l.fd, &l.large.fd} {
		if *fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return os.NewSyscallError("socket AF_PACKET", err)
		}
	}
	if err := unix.SetsockoptInt(l.large.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return os.NewSyscallError("setsockopt PACKET_VNET_HDR", err)
	}
	for _, o := range []struct {
		name int
		text string
	}{
		{unix.PACKET_VNET_HDR, "PACKET_VNET_HDR"}, {unix.PACKET_AUXDATA, "PACKET_AUXDATA"},
		{unix.PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING"},
	} {
		if err := unix.SetsockoptInt(l.fd, unix.SOL_PACKET, o.name, 1); err != nil {
			return os.NewSyscallError("setsockopt "+o.text, err)
		}
	}
	if unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, l.cfg.ReceiveBuffer) != nil {
		// A refusal leaves the buffer unchanged; the effective size is read below.
		_ = unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, l.cfg.ReceiveBuffer)
	}
	l.buffer, _ = unix.GetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	return l.bind()
}

// bind binds the sockets to the interface. The one that receives hears what the stations want before it gets the first frame.
func (l *etherLink) bind() error {
	for _, fd := range []int{l.outlet, l.large.fd} {
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: l.index}); err != nil {
			return os.NewSyscallError("bind", err)
		}
	}
	if l.cfg.Promiscuous {
		if err := l.member(unix.PACKET_ADD_MEMBERSHIP, unix.PACKET_MR_PROMISC, eth.MAC{}); err != nil {
			return err
		}
	}
	if err := l.listen(); err != nil {
		return err
	}
	var all [2]byte
	binary.BigEndian.PutUint16(all[:], unix.ETH_P_ALL)
	to := &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(all[:]), Ifindex: l.index}
	return os.NewSyscallError("bind", unix.Bind(l.fd, to))
}

// Capabilities implements link.Link.
func (l *etherLink) Capabilities() link.Capabilities { return l.caps }

// Send implements link.Link.
func (l *etherLink) Send(frames []frame.Out) (int, error) {
	if l.Ended() {
		return 0, net.ErrClosed
	}
	for n := 0; ; {
		if !l.parts.send(l) { // what is left of a frame before comes first
			return n, nil
		}
		k := plain(frames[n:])
		sent := l.out.Send(l.Set, l.outlet, frames[n:n+k])
		if n += sent; sent < k || n == len(frames) || !l.sendLarge(&frames[n]) {
			return n, nil
		}
		if n++; n == len(frames) {
			return n, nil
		}
	}
}

// Receive implements link.Link.
func (l *etherLink) Receive(in []frame.In) (int, error) {
	if l.Ended() {
		return 0, net.ErrClosed
	}
	l.parts.send(l) // nobody waits for that
	n := l.Looped(in)
	return n + l.receiver.receive(l.Set, l.fd, in[n:]), nil
}

// Errors implements link.Link. It also follows changes of the system.
func (l *etherLink) Errors(out []link.Unreachable) int {
	if l.Ended() {
		return 0
	}
	l.alarm.Hush()
	c := l.stack.news.Follow()
	if c.Addresses || c.Interfaces {
		l.survey()
	}
	if c.Neighbours {
		l.Apart(func() { l.stack.doubtful = true })
	}
	l.Tend(c.Neighbours)
	return l.Set.Errors(out)
}

// present returns the interface; nil: it is gone. One of its name that is there again, most likely with another index, takes its place.
func (l *etherLink) present() netlink.Link {
	i, err := l.stack.ask.LinkByIndex(l.index)
	if err == nil && !l.gone {
		return i
	}
	l.gone = true
	if i, err = l.stack.ask.LinkByName(l.cfg.Interface); err != nil || i.Attrs().EncapType != "ether" || l.again(i.Attrs()) != nil {
		return nil // until there are news
	}
	l.gone = false
	return i
}

// again makes the link one of an interface that was made anew. What the sockets had asked the one before to listen to has ended with it.
func (l *etherLink) again(a *netlink.LinkAttrs) error {
	l.index, l.unicast, l.groups, l.all = a.Index, nil, nil, false
	copy(l.mac[:], a.HardwareAddr)
	l.Apart(func() { l.stack.index = a.Index })
	return l.bind()
}

// survey adapts the link to changes of interfaces and addresses.
func (l *etherLink) survey() {
	var err error
	i := l.present()
	if l.state = (link.State{}); i != nil {
		l.state = l.stateOf(i.Attrs())
	}
	if l.Apart(func() { err = l.stack.survey() }); err != nil {
		return // the interface is gone, most likely
	}
	l.Refresh()
	_, _ = l.keep(), l.listen() // an address that somebody else uses is served all the same
	if i != nil && i.Attrs().MTU != l.caps.MTU {
		l.caps.MTU = i.Attrs().MTU
		l.receiver.cut.Grow(l.caps.MTU)
		l.SetMTU(l.caps.MTU)
	}
}

// Descriptors implements link.Link.
func (l *etherLink) Descriptors() []int {
	return []int{l.fd, l.stack.news.Descriptor(), l.alarm.Descriptor()}
}

// Stats implements link.Link.
func (l *etherLink) Stats() link.Stats {
	s := l.Set.Stats()
	if !l.Ended() {
		// Reading them clears them.
		if t, err := unix.GetsockoptTpacketStats(l.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			l.drops += uint64(t.Drops)
		}
	}
	s.ReceiveDrops += l.drops
	s.ReceiveBuffer = l.buffer
	return s
}

// Close implements link.Link.
func (l *etherLink) Close() error {
	if l.End() {
		l.release()
	}
	return nil
}

func (l *etherLink) release() {
	for _, fd := range []int{l.fd, l.outlet, l.large.fd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if l.stack != nil {
		l.stack.close()
	}
	if l.alarm != nil {
		l.alarm.Close()
	}
}
