// Package membership tells routers, and switches that listen to that, which multicast groups the stations of an Ethernet
// link want: by IGMP (RFC 3376, and RFC 2236 to older queriers) and MLD (RFC 3810, RFC 2710). Without that, a switch that
// snoops keeps a group's frames from them.
//
// A Reporter is pure: it is told the groups, frames and the time, and hands out frames and its deadline. It wants groups from
// any source.
package membership

import (
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// robustness is how often a change is reported, and interval within which time once more (RFC 3376 8.1, 8.11).
	robustness = 2
	interval   = time.Second
	// mostWait is the longest time in which a query lets members answer that is used: a report that comes early harms nobody.
	mostWait = 10 * time.Second
	// mostRecords is how many groups one report has.
	mostRecords = 64
)

// Groups to which reports go (RFC 3376 4.2.14, RFC 2236 9, RFC 3810 5.2.14).
var (
	routers4 = netip.AddrFrom4([4]byte{224, 0, 0, 2})
	igmpv3   = netip.AddrFrom4([4]byte{224, 0, 0, 22})
	routers6 = netip.IPv6LinkLocalAllRouters()
	mldv2    = netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 15: 0x16})
)

// AllSystems are the groups to which queries go. Everybody is a member: they are not reported.
var AllSystems = [2]netip.Addr{netip.AddrFrom4([4]byte{224, 0, 0, 1}), netip.IPv6LinkLocalAllNodes()}

// Port is an IP version on a VLAN.
type Port struct {
	VLAN uint16 // VLAN ID, 0: untagged
	V6   bool
}

// Source is the station that reports: its MAC, and its address, which for MLD is link-local. An address that is not valid
// stands for none (0.0.0.0, ::).
type Source struct {
	MAC  eth.MAC
	Addr netip.Addr
}

// Reporter reports for the stations of one link. Only one goroutine at a time may call its methods.
type Reporter struct {
	random func(n int64) int64
	ports  map[Port]*port
	frames [][]byte
}

// port is what is wanted on one.
type port struct {
	at      Port
	from    Source
	groups  []netip.Addr
	old     bool // the last query was of IGMPv2 or MLDv1
	changed []eth.GroupRecord
	repeats int        // of changed
	again   clock.Time // when changed is reported again
	answer  clock.Time // when groups are reported, because somebody has asked
}

// New returns a reporter without groups. random returns a number from 0 to n-1; nil: the same one always, for tests.
func New(random func(n int64) int64) *Reporter {
	if random == nil {
		random = func(n int64) int64 { return n / 2 }
	}
	return &Reporter{random: random, ports: map[Port]*port{}}
}

// Want sets the groups that are wanted on a port, and who reports them. Changes are reported at once.
func (r *Reporter) Want(now clock.Time, at Port, from Source, groups []netip.Addr) {
	p := r.ports[at]
	if p == nil {
		if len(groups) == 0 {
			return
		}
		p = &port{at: at, again: clock.Never, answer: clock.Never}
		r.ports[at] = p
	}
	if len(groups) > 0 { // who has gone still reports that
		p.from = from
	}
	var changed []eth.GroupRecord
	for _, g := range groups {
		if !slices.Contains(p.groups, g) && !slices.Contains(AllSystems[:], g) {
			changed = append(changed, eth.GroupRecord{Type: eth.ChangeToExclude, Group: g})
		}
	}
	for _, g := range p.groups {
		if !slices.Contains(groups, g) {
			changed = append(changed, eth.GroupRecord{Type: eth.ChangeToInclude, Group: g})
		}
	}
	p.groups = slices.DeleteFunc(slices.Clone(groups), func(g netip.Addr) bool { return slices.Contains(AllSystems[:], g) })
	if len(changed) == 0 {
		return
	}
	// What was to be repeated of other groups stays to be.
	for _, c := range p.changed {
		if !slices.ContainsFunc(changed, func(o eth.GroupRecord) bool { return o.Group == c.Group }) {
			changed = append(changed, c)
		}
	}
	p.changed, p.repeats = changed, robustness
	r.change(now, p)
}

// change reports what has changed.
func (r *Reporter) change(now clock.Time, p *port) {
	r.report(p, p.changed)
	if p.repeats--; p.repeats > 0 {
		p.again = now.Add(1 + time.Duration(r.random(int64(interval))))
		return
	}
	p.changed, p.again = nil, clock.Never
	if len(p.groups) == 0 {
		delete(r.ports, p.at)
	}
}

// Deadline returns when Advance is due.
func (r *Reporter) Deadline() clock.Time {
	due := clock.Never
	for _, p := range r.ports {
		due = clock.Min(due, clock.Min(p.again, p.answer))
	}
	return due
}

// Advance does what is due.
func (r *Reporter) Advance(now clock.Time) {
	for _, p := range r.ports {
		if p.answer <= now {
			p.answer = clock.Never
			var records []eth.GroupRecord
			for _, g := range p.groups {
				records = append(records, eth.GroupRecord{Type: eth.ModeIsExclude, Group: g})
			}
			r.report(p, records)
		}
		if p.again <= now {
			r.change(now, p)
		}
	}
}

// Concerns reports whether a frame may be a query. It is cheap, for every frame to a group that arrives.
func Concerns(frame []byte) bool {
	b, _, ok := packet(frame)
	if !ok {
		return false
	}
	return b[0]>>4 == 4 && len(b) >= eth.IPv4Len && eth.IPv4(b).Protocol() == eth.ProtocolIGMP ||
		b[0]>>4 == 6 && len(b) >= eth.IPv6Len && eth.IPv6(b).NextHeader() == eth.ProtocolHopByHop
}

// packet returns the IP packet in a frame, and its VLAN.
func packet(frame []byte) (b []byte, vlan uint16, ok bool) {
	h, b, err := eth.ParseEthernet(frame)
	if err != nil || len(b) == 0 || h.Type != eth.TypeIPv4 && h.Type != eth.TypeIPv6 {
		return nil, 0, false
	}
	return b, h.TCI & eth.VIDMask, true
}

// Receive handles a frame: a query makes the port's groups be reported, within the time that it gives. Other frames are
// ignored.
func (r *Reporter) Receive(now clock.Time, frame []byte) {
	b, vlan, ok := packet(frame)
	if !ok {
		return
	}
	var wait time.Duration
	var old bool
	if h, payload, err := eth.ParseIPv4(b); err == nil && h.Protocol() == eth.ProtocolIGMP {
		q, err := eth.ParseIGMP(payload)
		if err != nil || q.Type != eth.IGMPQuery {
			return
		}
		// A response time of 0 is one of IGMPv1, whose queriers understand reports of IGMPv2 as little as of IGMPv3.
		old, wait = len(payload) < 12, time.Duration(code(q.MaxRespTime))*100*time.Millisecond
	} else if h, payload, err := eth.ParseIPv6(b); err == nil {
		message, ok := eth.MLDMessage(h, payload)
		if !ok {
			return
		}
		q, err := eth.ParseMLD(message, h.Src(), h.Dst())
		if err != nil || q.Type != eth.MLDQuery {
			return
		}
		old, wait = len(message) < 28, time.Duration(q.MaxRespDelay)*time.Millisecond
	} else {
		return
	}
	p := r.ports[Port{vlan, b[0]>>4 == 6}]
	if p == nil {
		return
	}
	p.old = old
	p.answer = clock.Min(p.answer, now.Add(time.Duration(r.random(int64(min(wait, mostWait))+1))))
}

// code decodes a response time (RFC 3376 4.1.1).
func code(c uint8) int {
	if c < 128 {
		return int(c)
	}
	return int(c&0xf|0x10) << (c>>4&7 + 3)
}

// report queues the reports of groups.
func (r *Reporter) report(p *port, records []eth.GroupRecord) {
	if p.old {
		for _, g := range records {
			r.reportOld(p, g)
		}
		return
	}
	for part := range slices.Chunk(records, mostRecords) {
		if p.at.V6 {
			src := p.from.Addr
			if !src.IsValid() {
				src = netip.IPv6Unspecified()
			}
			r.send(p, mldv2, eth.AppendMLDv2Report(nil, src, mldv2, part))
		} else {
			r.send(p, igmpv3, eth.AppendIGMPv3Report(nil, part))
		}
	}
}

// reportOld queues the report of a group for routers that know IGMPv2 or MLDv1 only.
func (r *Reporter) reportOld(p *port, g eth.GroupRecord) {
	leaves, to := g.Type == eth.ChangeToInclude, g.Group
	if p.at.V6 {
		m := eth.MLD{Type: eth.MLDv1Report, Group: g.Group}
		if leaves {
			m.Type, to = eth.MLDv1Done, routers6
		}
		src := p.from.Addr
		if !src.IsValid() {
			src = netip.IPv6Unspecified()
		}
		r.send(p, to, m.Append(nil, src, to))
		return
	}
	m := eth.IGMP{Type: eth.IGMPv2Report, Group: g.Group}
	if leaves {
		m.Type, to = eth.IGMPv2Leave, routers4
	}
	r.send(p, to, m.Append(nil))
}

// mostFrames is how many frames may wait for Frame; more are dropped, as if the network had lost them.
const mostFrames = 256

func (r *Reporter) send(p *port, dst netip.Addr, message []byte) {
	if len(r.frames) >= mostFrames {
		return
	}
	to, _ := eth.MulticastMAC(dst)
	h := eth.Ethernet{Dst: to, Src: p.from.MAC, Tagged: p.at.VLAN != 0, TCI: p.at.VLAN, Type: eth.TypeIPv4}
	if p.at.V6 {
		h.Type = eth.TypeIPv6
		r.frames = append(r.frames, eth.AppendMLDPacket(h.Append(nil), p.from.Addr, dst, message))
		return
	}
	r.frames = append(r.frames, eth.AppendIGMPPacket(h.Append(nil), p.from.Addr, dst, message))
}

// Frame returns the next frame to be sent, with its Ethernet header; nil: there is none.
func (r *Reporter) Frame() []byte {
	if len(r.frames) == 0 {
		return nil
	}
	f := r.frames[0]
	r.frames = r.frames[1:]
	return f
}
