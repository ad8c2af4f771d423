package ipoib

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// The multicast monitor learns from the system's own reports which groups it joins and leaves, and asks
// from time to time, with a general query, whether it is still a member (WinOF 5.50, 4.6.7).

// snoop reads the IGMP message in an IPv4 packet that the system sends.
func (i *Interface) snoop(now clock.Time, body []byte) {
	if len(body) > 0 && body[0] == eth.IGMPv3Report {
		records, err := eth.ParseIGMPv3Report(body)
		if err == nil {
			i.reported(now, records)
		}
		return
	}
	const version1 = 0x12
	if len(body) == 8 && body[0] == version1 && eth.Checksum(body) == 0 {
		i.report(now, netip.AddrFrom4([4]byte(body[4:])))
		return
	}
	m, err := eth.ParseIGMP(body)
	if err != nil {
		return
	}
	switch m.Type {
	case eth.IGMPv2Report:
		i.report(now, m.Group)
	case eth.IGMPv2Leave:
		i.dismiss(now, m.Group)
	}
}

// snoop6 reads the MLD message in an IPv6 packet that the system sends; payload is what follows the IPv6
// header.
func (i *Interface) snoop6(now clock.Time, payload []byte, src, dst netip.Addr) {
	body, ok := behindOptions(payload)
	if !ok || len(body) == 0 {
		return
	}
	if body[0] == eth.MLDv2Report {
		records, err := eth.ParseMLDv2Report(body, src, dst)
		if err == nil {
			i.reported(now, records)
		}
		return
	}
	m, err := eth.ParseMLD(body, src, dst)
	if err != nil {
		return
	}
	switch m.Type {
	case eth.MLDv1Report:
		i.report(now, m.Group)
	case eth.MLDv1Done:
		i.dismiss(now, m.Group)
	}
}

// behindOptions returns the ICMPv6 message after a hop-by-hop header, in which MLD has its router alert.
func behindOptions(payload []byte) ([]byte, bool) {
	if len(payload) < 8 || payload[0] != eth.ProtocolICMPv6 {
		return nil, false
	}
	n := 8 + 8*int(payload[1])
	if len(payload) < n {
		return nil, false
	}
	return payload[n:], true
}

func (i *Interface) reported(now clock.Time, records []eth.GroupRecord) {
	for _, r := range records {
		listens := false
		switch r.Type {
		case eth.ModeIsInclude, eth.ChangeToInclude:
			listens = len(r.Sources) > 0
		case eth.ModeIsExclude, eth.ChangeToExclude, eth.AllowNewSources:
			listens = true
		default:
			continue // fewer sources, but maybe others
		}
		if listens {
			i.report(now, r.Group)
		} else {
			i.dismiss(now, r.Group)
		}
	}
}

// report makes the interface a member of a group that the system listens to.
func (i *Interface) report(now clock.Time, addr netip.Addr) { i.member(now, addr, false) }

// dismiss ends the membership in a group that the system no longer listens to.
func (i *Interface) dismiss(now clock.Time, addr netip.Addr) {
	mgid, ok := groupMGID(addr, i.cfg.Scope, i.pkey)
	if g := i.groups[mgid]; ok && g != nil && !g.stays && g.want == joinFull {
		i.leave(now, g)
	}
}

// monitorGroups is a run of the monitor.
func (i *Interface) monitorGroups(now clock.Time) {
	i.runs++
	for _, g := range i.sortedGroups() {
		if g.awaiting == 0 || g.stays {
			continue
		}
		if g.awaiting--; g.awaiting == 0 {
			i.leave(now, g)
		}
	}
	if i.runs%i.cfg.GeneralQueryRuns != 0 {
		return
	}
	for _, g := range i.groups {
		if g.want == joinFull && !g.stays && g.awaiting == 0 {
			g.awaiting = i.cfg.QueryResponseRuns
		}
	}
	i.generalQueries()
}

// generalQueries asks the system which groups it listens to.
func (i *Interface) generalQueries() {
	i.do(Deliver{generalQuery()})
	i.do(Deliver{generalQuery6(linkLocal(binary.BigEndian.Uint64(i.port.GID[8:])))})
}

const (
	responseTenths = 100 // tenths of a second in which to answer: the default of RFC 3376 8.3
	robustness     = 2
	queryInterval  = 90 // seconds, as the querier's interval code
)

// generalQuery returns an IGMPv3 general query without a source address (RFC 3376 4.1).
func generalQuery() []byte {
	body := []byte{eth.IGMPQuery, responseTenths, 0, 0, 0, 0, 0, 0, robustness, queryInterval, 0, 0}
	binary.BigEndian.PutUint16(body[2:], eth.Checksum(body))
	return eth.AppendIGMPPacket(nil, netip.Addr{}, allNodes[0], body)
}

// generalQuery6 returns an MLDv2 general query (RFC 3810 5.1).
func generalQuery6(src netip.Addr) []byte {
	body := append(make([]byte, 16), robustness, queryInterval, 0, 0)
	m := eth.ICMP{Type: eth.MLDQuery, Rest: responseTenths * 100 << 16, Data: body}
	return eth.AppendMLDPacket(nil, src, allNodes[1], m.AppendV6(nil, src, allNodes[1]))
}
