package device

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// Partitions are what an administrator lets a virtual function of an InfiniBand port have of the port's partition table, at its own
// indices: the zero value is the default partition.
type Partitions struct {
	Keys [MostPartitions]ib.PKey
	Used int  // of Keys
	All  bool // the port's table as it is
}

// MostPartitions is how many rows the partition table of a virtual function has at most, unless it is that of the port.
const MostPartitions = 16

// AliasGUIDs are the GUIDs of a virtual function at an InfiniBand port: what is asked of the subnet administration for its rows of the
// port's GUIDInfo, as many as Used; 0 is what the subnet manager chooses.
type AliasGUIDs struct {
	List [ibport.VirtualGIDs]uint64
	Used int
}

// freeVirtual returns the first number that no virtual function at an InfiniBand port has.
func (p *portLoop) freeVirtual(name string, rows int) (int, error) {
	taken := func(n int) bool {
		return slices.ContainsFunc(p.functions, func(o *adapter) bool { return o.virtual() && o.number == n })
	}
	n := 0
	for taken(n) {
		n++
	}
	if most := ibport.MostVirtual(rows); n >= most {
		return 0, command.Errorf(command.Exhausted, "Name %q: the port's GID table has %d rows, %d of them the physical function's, and so none for more "+
			"than %d virtual functions", name, rows, ibport.PhysicalGIDs, most)
	}
	return n, nil
}

// shareIB returns what a virtual function has of its InfiniBand port.
func (a *adapter) shareIB() ibport.Share {
	v, g := a.cfg.Virtual, &a.cfg.aliases
	if a.cfg.byLID {
		return ibport.Share{Virtual: a.virtualPort(), Aliases: [ibport.VirtualGIDs]uint64{a.cfg.GUID}, Used: 1,
			Keys: slices.Clone(v.PKeys.Keys[:v.PKeys.Used]), AllKeys: v.PKeys.All, Down: v.Link == LinkDown}
	}
	return ibport.Share{First: ibport.FirstRow(a.number), Aliases: g.List, Used: max(g.Used, 1),
		Keys: slices.Clone(v.PKeys.Keys[:v.PKeys.Used]), AllKeys: v.PKeys.All,
		Down: v.Link == LinkDown}
}

// reshare tells a virtual function's InfiniBand port what is decided about it.
func (a *adapter) reshare() {
	if a.ib != nil && a.virtual() {
		a.ib.SetShare(a.shareIB())
		a.cut()
		a.port.tellVirtual(nil)
	}
}

// virtualPort is the index of the virtual port of a virtual function with a LID of its own.
func (a *adapter) virtualPort() uint16 { return uint16(a.number) + 1 }

// tellVirtual tells the fabric which virtual ports there are: those of all virtual functions with LIDs of their own, but the one that is
// leaving and those that an administrator keeps down.
func (p *portLoop) tellVirtual(but *adapter) {
	var list []link.VirtualPort
	var to link.VirtualPorts
	for _, o := range p.functions {
		switch {
		case o.ib == nil:
			return
		case !o.virtual():
			if o.cfg.Link != nil {
				to, _ = o.cfg.Link.Capabilities().Fabric.(link.VirtualPorts)
			}
		case o != but && o.cfg.byLID && !o.switchedDown():
			list = append(list, link.VirtualPort{Index: o.virtualPort(), GUID: o.cfg.GUID})
		}
	}
	same := func(a, b link.VirtualPort) bool { return a.Index == b.Index && a.GUID == b.GUID }
	if to != nil && !slices.EqualFunc(list, p.virtual, same) {
		p.virtual = list
		to.SetVirtual(list)
	}
}

// ownsLID reports whether packets to a LID are for a virtual function alone.
func (a *adapter) ownsLID(l ib.LID) bool { return a.ib.Has(l) }

// reserve leaves rows of an InfiniBand port's GID table to its virtual functions, if it has any but the one that is leaving.
func (p *portLoop) reserve(but *adapter) {
	from := 0
	for _, o := range p.functions {
		if o != but && o.virtual() && !o.cfg.byLID {
			from = ibport.PhysicalGIDs
		}
	}
	for _, o := range p.functions {
		if o.ib != nil && !o.virtual() {
			o.ib.Reserve(from)
		}
	}
	p.tellVirtual(but)
}

// ownsGID reports whether packets to a GID are for an adapter at an InfiniBand port.
func (a *adapter) ownsGID(gid netip.Addr) bool { return a.ib.HasGID(gid) }

// takenNumber reports whether another function at an InfiniBand port has a QP number: these tell the functions apart there.
func (a *adapter) takenNumber(qpn uint32) bool {
	return a.port != nil && slices.ContainsFunc(a.port.functions, func(o *adapter) bool { return o != a && o.engine.HasNumber(qpn) })
}

// checkSource refuses a virtual function of an InfiniBand port datagrams from another GID than its first (WinOF 5.50, 4.5.3.2.2).
func (a *adapter) checkSource(av *command.AddressVector) error {
	if a.ib != nil && a.virtual() && av.SrcIndex != 0 {
		return command.Errorf(command.Unsupported, "SrcIndex is %d: UD queue pairs of a virtual function send from index 0 of its GIDs alone", av.SrcIndex)
	}
	return nil
}

// FabricStatus is what a virtual function has of an InfiniBand port.
type FabricStatus struct {
	LID     ib.LID
	ByLID   bool      // it is its own, and not the port's
	Aliases []uint64  // by its rows; 0: none yet
	Why     error     // why it has not all that were asked for; nil: it has, or they have not been answered
	PKeys   []ib.PKey // its table
	// Refused are packets to QP0 that its queue pairs were not allowed.
	Refused uint64
}

func (a *adapter) fabricStatus() *FabricStatus {
	if a.ib == nil {
		return nil
	}
	s := &FabricStatus{LID: a.ib.Settings().LID, ByLID: a.cfg.byLID, PKeys: slices.Clone(a.engine.PKeys()), Refused: a.station.Refused}
	s.Aliases, s.Why = a.ib.Aliases()
	return s
}
