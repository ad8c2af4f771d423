package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// system queries the kernel about routes, neighbours, interfaces and qdiscs, and is notified of changes. Its
// sockets stay in the network namespace in which they were opened. It uses the messages of package netlink
// rather than its functions, which lack what is needed here: the route of a protocol and ports, a single
// neighbour, and notifications that are read without a goroutine.
type system struct {
	ask  map[int]*nl.SocketHandle // as nl.NetlinkRequest wants it
	news *nl.NetlinkSocket
}

// answerTime limits the wait for an answer, which the kernel gives during the request.
const answerTime = 100_000 // us

// newsGroups are the changes that may change a packet's path (linux/rtnetlink.h, RTNLGRP_*).
var newsGroups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_TC,
	unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE,
	unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE,
}

func openSystem() (*system, error) {
	ask, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	news, err := nl.Subscribe(unix.NETLINK_ROUTE, newsGroups...)
	if err != nil {
		ask.Close()
		return nil, fmt.Errorf("netlink: %w", err)
	}
	limit := unix.Timeval{Usec: answerTime}
	for _, s := range []*nl.NetlinkSocket{ask, news} {
		_, _ = s.SetSendTimeout(&limit), s.SetReceiveTimeout(&limit) // they never fail
	}
	return &system{map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: ask}}, news}, nil
}

// socket returns a descriptor in the system's network namespace, which becomes readable when there are changes.
func (s *system) socket() int { return s.news.GetFd() }

func (s *system) close() {
	s.ask[unix.NETLINK_ROUTE].Close()
	s.news.Close()
}

// each sends a request, and passes the answers of one kind to take until it returns false.
func (s *system) each(r *nl.NetlinkRequest, kind uint16, take func(body []byte) bool) error {
	r.Sockets = s.ask
	return r.ExecuteIter(unix.NETLINK_ROUTE, kind, take)
}

// one sends a request and returns the answer of one kind; nil: the kernel has none.
func (s *system) one(r *nl.NetlinkRequest, kind uint16) (body []byte) {
	err := s.each(r, kind, func(b []byte) bool { body = b; return false })
	if err != nil {
		return nil
	}
	return body
}

func request(kind, flags int, body nl.NetlinkRequestData, attributes ...*nl.RtAttr) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(kind, flags)
	r.AddData(body)
	for _, a := range attributes {
		r.AddData(a)
	}
	return r
}

// route says how the system would send a packet.
type route struct {
	gateway netip.Addr // invalid if the destination is a neighbour
	out     int        // index of the interface
	unicast bool       // to another host, by an Ethernet address
}

// route asks for the route of a UDP datagram.
func (s *system) route(src, dst netip.Addr, srcPort, dstPort uint16, out int) (route, bool) {
	bits := uint8(dst.BitLen())
	r := request(unix.RTM_GETROUTE, 0, &nl.RtMsg{RtMsg: unix.RtMsg{Family: family(dst), Dst_len: bits, Src_len: bits}},
		nl.NewRtAttr(unix.RTA_DST, dst.AsSlice()),
		nl.NewRtAttr(unix.RTA_SRC, src.AsSlice()),
		nl.NewRtAttr(unix.RTA_IP_PROTO, nl.Uint8Attr(unix.IPPROTO_UDP)),
		nl.NewRtAttr(unix.RTA_SPORT, nl.BEUint16Attr(srcPort)),
		nl.NewRtAttr(unix.RTA_DPORT, nl.BEUint16Attr(dstPort)))
	if dst.IsLinkLocalUnicast() { // such an address needs its zone
		r.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(out))))
	}
	body := s.one(r, unix.RTM_NEWROUTE)
	if body == nil {
		return route{}, false
	}
	return parseRoute(body)
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// parseRoute decodes an RTM_NEWROUTE.
func parseRoute(b []byte) (r route, ok bool) {
	m := nl.DeserializeRtMsg(b)
	attributes, err := nl.ParseRouteAttr(b[m.Len():])
	if err != nil {
		return r, false
	}
	r.unicast = m.Type == unix.RTN_UNICAST
	for _, a := range attributes {
		switch a.Attr.Type &^ unix.NLA_F_NESTED {
		case unix.RTA_OIF:
			r.out = int(binary.NativeEndian.Uint32(a.Value))
		case unix.RTA_GATEWAY:
			r.gateway, _ = netip.AddrFromSlice(a.Value)
		case unix.RTA_VIA:
			var via netlink.Via
			if via.Decode(a.Value) == nil {
				r.gateway, _ = netip.AddrFromSlice(via.Addr)
			}
		case unix.RTA_MULTIPATH, unix.RTA_ENCAP:
			r.unicast = false // by means that frames cannot follow
		}
	}
	return r, r.out != 0
}

// neighbour is an entry of the system's neighbour table.
type neighbour struct {
	addr  netip.Addr
	out   int
	mac   [6]byte
	valid bool // the system would send to mac
}

// validStates are those in which the system uses an entry (its NUD_VALID).
const validStates = netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_REACHABLE | netlink.NUD_PROBE | netlink.NUD_STALE |
	netlink.NUD_DELAY

// neighbour asks for the entry of an address on an interface.
func (s *system) neighbour(addr netip.Addr, out int) (neighbour, bool) {
	body := s.one(request(unix.RTM_GETNEIGH, 0, &netlink.Ndmsg{Family: family(addr), Index: uint32(out)},
		nl.NewRtAttr(netlink.NDA_DST, addr.AsSlice())), unix.RTM_NEWNEIGH)
	if body == nil {
		return neighbour{}, false
	}
	return parseNeighbour(body, false)
}

// parseNeighbour decodes an RTM_NEWNEIGH or, if gone, an RTM_DELNEIGH.
func parseNeighbour(b []byte, gone bool) (n neighbour, ok bool) {
	entry, err := netlink.NeighDeserialize(b)
	if err != nil {
		return n, false
	}
	n.out = entry.LinkIndex
	n.addr, ok = netip.AddrFromSlice(entry.IP)
	n.valid = !gone && entry.State&validStates != 0 && len(entry.HardwareAddr) == len(n.mac)
	copy(n.mac[:], entry.HardwareAddr)
	return n, ok
}

// device is an interface.
type device struct {
	kind     string // the encapsulation: ethernet, loopback, or another
	mac      [6]byte
	enslaved bool
	mtu      int
}

// Kinds of interfaces (netlink.LinkAttrs.EncapType).
const (
	ethernet = "ether"
	loopback = "loopback"
)

func (s *system) device(index int) (d device, ok bool) {
	m := nl.NewIfInfomsg(unix.AF_UNSPEC)
	m.Index = int32(index)
	body := s.one(request(unix.RTM_GETLINK, 0, m), unix.RTM_NEWLINK)
	if body == nil {
		return d, false
	}
	l, err := netlink.LinkDeserialize(nil, body)
	if err != nil {
		return d, false
	}
	about := l.Attrs()
	d.kind, d.enslaved, d.mtu = about.EncapType, about.MasterIndex != 0, about.MTU
	if len(about.HardwareAddr) == len(d.mac) {
		copy(d.mac[:], about.HardwareAddr)
	}
	return d, true
}

// ingressQdisc reports whether an interface has a qdisc at its ingress, or whether that cannot be determined. It asks
// for all qdiscs: the answer to a request for a single one would be sent to everybody who follows changes.
func (s *system) ingressQdisc(index int) (found bool) {
	err := s.each(request(unix.RTM_GETQDISC, unix.NLM_F_DUMP, &nl.TcMsg{}), unix.RTM_NEWQDISC, func(b []byte) bool {
		q := nl.DeserializeTcMsg(b)
		found = int(q.Ifindex) == index && q.Parent == netlink.HANDLE_INGRESS
		return !found
	})
	// An interruption by a change is followed by the news of it.
	return found || err != nil && !errors.Is(err, nl.ErrDumpInterrupted)
}

// newsTurns limits how much one call of changes reads.
const newsTurns = 16

// changes calls each for every notification of a change. It returns false if some were lost.
func (s *system) changes(each func(kind uint16, body []byte)) bool {
	for range newsTurns {
		// Receive allocates, and waits for what is not there.
		fds := [1]unix.PollFd{{Fd: int32(s.socket()), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds[:], 0); n == 0 || err != nil {
			return true
		}
		messages, from, err := s.news.Receive()
		if err != nil {
			return false
		}
		for i := range messages {
			if from.Pid == nl.PidKernel {
				each(messages[i].Header.Type, messages[i].Data)
			}
		}
	}
	return true
}
