package verbs

import (
	"math"
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
)

// AddressVector is the destination of the packets that a QP or an address handle sends.
type AddressVector struct {
	Addr         netip.Addr // of the destination port, or a multicast group
	SourceIndex  int        // row of the GID table that is the source
	TrafficClass uint8      // DSCP and ECN
	HopLimit     uint8      // 0: 16
	SL           uint8      // priority, 0 to 7; with LID InfiniBand's service level, 0 to 15
	FlowLabel    uint32     // 20 bits
	SourcePort   uint16     // RoCE v2 UDP source port; 0: computed
	// LID is the destination's or a group's LID on an InfiniBand port; 0 uses the LID of Addr if a path to
	// it is known. PathBits selects the source LID. Global adds a GRH with Addr as the destination GID;
	// packets to a group always carry one.
	LID      uint16
	PathBits uint8
	Global   bool
	// StaticRate is how fast packets leave at most: a code of ibv_rate (IBA 15.2.5.16), 2 (2.5 Gb/s) to 26; 0, and what is no less than
	// the speed of the port, limits nothing.
	StaticRate uint8
}

func (v *AddressVector) command(op string) (command.AddressVector, error) {
	if !v.Addr.IsValid() || v.Addr.IsUnspecified() {
		return command.AddressVector{}, newError(op, ErrInvalid, "Addr is not an address of a port")
	}
	if v.SourceIndex < 0 || v.SourceIndex > math.MaxUint16 {
		return command.AddressVector{}, newError(op, ErrInvalid, "SourceIndex is %d, want a row of the GID table", v.SourceIndex)
	}
	if most := v.mostSL(); v.SL > most {
		return command.AddressVector{}, newError(op, ErrInvalid, "SL is %d, want 0 to %d", v.SL, most)
	}
	if v.PathBits >= command.PathGlobal {
		return command.AddressVector{}, newError(op, ErrInvalid, "PathBits is %d, want 0 to 127", v.PathBits)
	}
	path := v.PathBits
	if v.Global {
		path |= command.PathGlobal
	}
	if v.FlowLabel > 1<<20-1 {
		return command.AddressVector{}, newError(op, ErrInvalid, "FlowLabel is %#x, want 20 bits", v.FlowLabel)
	}
	return command.AddressVector{
		Addr: command.AddrFrom(v.Addr), SrcIndex: uint16(v.SourceIndex), TrafficClass: v.TrafficClass,
		HopLimit: v.HopLimit, SL: v.SL, FlowLabel: v.FlowLabel, SrcPort: v.SourcePort,
		LID: v.LID, Path: path, StaticRate: v.StaticRate,
	}, nil
}

func (v *AddressVector) mostSL() uint8 {
	if v.LID != 0 {
		return 15
	}
	return 7
}

func vectorFrom(v *command.AddressVector) AddressVector {
	return AddressVector{
		Addr: v.Addr.IP(), SourceIndex: int(v.SrcIndex), TrafficClass: v.TrafficClass,
		HopLimit: v.HopLimit, SL: v.SL, FlowLabel: v.FlowLabel, SourcePort: v.SrcPort,
		LID: v.LID, PathBits: v.Path &^ command.PathGlobal, Global: v.Path&command.PathGlobal != 0,
		StaticRate: v.StaticRate,
	}
}

// AH is an address handle: the destination of a datagram.
type AH struct {
	pd     *PD
	handle command.Handle
}

// CreateAH creates an address handle.
func (pd *PD) CreateAH(v AddressVector) (*AH, error) {
	av, err := v.command("create ah")
	if err != nil {
		return nil, err
	}
	h := pd.dev.host
	handle, err := h.backend.CreateAH(h.ctx, command.CreateAH{PD: pd.handle, AV: av})
	if err != nil {
		return nil, wrap("create ah", err)
	}
	return &AH{pd: pd, handle: handle}, nil
}

// Close destroys the address handle.
func (ah *AH) Close() error {
	h := ah.pd.dev.host
	return h.destroyed("destroy ah", h.backend.Destroy(h.ctx, command.KindAH, ah.handle))
}
