package subnet

import (
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// enforcement makes a switch check the partitions of a host's packets if it can.
func (s *SM) enforcement(p int32, d *mad.PortInfo) {
	info := s.cur.Nodes[s.cur.Ports[p].Node].SwInfo
	if info == nil || int(info.PartitionEnforcementCap) < len(s.keysBehind(s.cur.Ports[p].Peer)) {
		d.PartitionEnforcementInbound, d.PartitionEnforcementOutbound = false, false
		return
	}
	d.PartitionEnforcementInbound = info.InboundEnforcementCap && (s.cfg.Enforce == EnforceBoth || s.cfg.Enforce == EnforceIn)
	d.PartitionEnforcementOutbound = info.OutboundEnforcementCap && (s.cfg.Enforce == EnforceBoth || s.cfg.Enforce == EnforceOut)
}

// keysOf returns the P_Keys of an end port.
func (s *SM) keysOf(p int32) []ib.PKey {
	n := s.cur
	return s.cfg.Partitions.Keys(n.Ports[p].GUID, n.Nodes[n.Ports[p].Node].Info.NodeType, p == n.Self, s.cfg.AllowBothPKeys)
}

// setUpKeys writes the blocks of partition tables that differ.
func (s *SM) setUpKeys(p int32) {
	n := s.cur
	port := &n.Ports[p]
	if port.Reach {
		if port.PKeys == nil {
			return
		}
		first := len(s.cfg.Partitions.List) > 0 && slices.ContainsFunc(s.cfg.Partitions.List,
			func(x partition.Partition) bool { return x.Index0 })
		t, fits := partition.Fit(port.PKeys, s.keysOf(p), first, int(n.Nodes[port.Node].Info.PartitionCap))
		if !fits {
			s.problem("%s has room for %d P_Keys, it is a member of more partitions", n.Name(p), n.Nodes[port.Node].Info.PartitionCap)
		}
		s.pushKeys(p, 0, port.PKeys, t)
		port.PKeys = t
		return
	}
	d, _ := s.wanted(p)
	if !n.IsSwitch(p) || !d.PartitionEnforcementInbound && !d.PartitionEnforcementOutbound || !topology.Linked(&port.Info) ||
		port.Peer == topology.None {
		return
	}
	have := s.tables[n.Nodes[port.Node].Info.NodeGUID]
	cap := int(n.Nodes[port.Node].SwInfo.PartitionEnforcementCap)
	old := have.pkeys[port.Num]
	t, _ := partition.Fit(old, s.keysBehind(port.Peer), false, cap)
	s.pushKeys(p, uint32(port.Num)<<16, old, t)
	port.PKeys, have.pkeys[port.Num] = t, t
}

func (s *SM) pushKeys(p int32, modifier uint32, old, t []ib.PKey) {
	const block = 32
	for b := 0; b*block < len(t); b++ {
		if (b+1)*block <= len(old) && slices.Equal(old[b*block:(b+1)*block], t[b*block:(b+1)*block]) {
			continue
		}
		s.x.push(work{at: s.askAt(p), attr: mad.AttrPKeyTable, mod: modifier | uint32(b), set: true})
	}
}

// keyFor returns the M_Key that a request needs. If a port shows another key than ours, a Set needs that
// one. Ports show it when the lease of a manager that is gone has expired (IBA 14.2.4).
func (s *SM) keyFor(w *work) uint64 {
	if w.set && w.at != topology.None {
		if k := s.cur.Ports[s.cur.Base(s.cur.Entry(w.at))].Info.MKey; k != 0 {
			return k
		}
	}
	return s.cfg.MKey
}

// takeKeys sets our M_Key at the ports that have another one, before anything else is set there.
func (s *SM) takeKeys() {
	s.stage = stageKeys
	for i := range s.cur.Ports {
		if p := int32(i); s.cur.Ports[p].Reach && s.cur.Ports[p].Index == 0 && s.cur.Ports[p].Known && s.cur.Ports[p].Info.MKey != 0 &&
			s.cur.Ports[p].Info.MKey != s.cfg.MKey {
			s.x.push(work{at: s.askAt(p), attr: mad.AttrPortInfo, mod: s.portModifier(p), set: true})
		}
	}
}
