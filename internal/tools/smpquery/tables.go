package smpquery

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	pkeysInBlock = 32
	guidsInBlock = 8
)

func (r *run) pkeys() error {
	n, err := r.NodeInfo(r.to)
	if err != nil {
		return r.lost(err, "node info query failed")
	}
	if r.port > n.NumPorts {
		return ibdiag.Failf("operation %s: invalid port number", r.name)
	}
	capacity := int(n.PartitionCap)
	if n.NodeType == mad.NodeSwitch && r.port != 0 {
		sw, err := r.SwitchInfo(r.to)
		if err != nil {
			return r.lost(err, "switch info failed")
		}
		capacity = int(sw.PartitionEnforcementCap)
	}
	for first := 0; first < capacity; first += pkeysInBlock {
		a, err := r.Get(r.to, mad.AttrPKeyTable, uint32(first/pkeysInBlock)|uint32(r.port)<<16)
		if err != nil {
			return r.lost(err, "pkey table query failed")
		}
		t, err := mad.ParsePKeyTable(a.Data[:])
		if err != nil {
			return err
		}
		for i := 0; i < pkeysInBlock && first+i < capacity; i += 8 {
			r.Printf("%4d:", first+i)
			for _, k := range t[i : i+8] {
				r.Printf(" 0x%04x", uint16(k))
			}
			r.Printf("\n")
		}
	}
	r.Printf("%d pkeys capacity for this port\n", capacity)
	return nil
}

func (r *run) guids() error {
	p, err := r.PortInfo(r.to, 0)
	if err != nil {
		return r.lost(err, "port info failed")
	}
	capacity := int(p.GUIDCap)
	for first := 0; first < capacity; first += guidsInBlock {
		a, err := r.Get(r.to, mad.AttrGUIDInfo, uint32(first/guidsInBlock))
		if err != nil {
			return r.lost(err, "guid info query failed")
		}
		g, err := mad.ParseGUIDInfo(a.Data[:])
		if err != nil {
			return err
		}
		for i := 0; i < guidsInBlock && first+i < capacity; i += 2 {
			r.Printf("%4d: %s %s\n", first+i, ibdiag.Hex64(g[i]), ibdiag.Hex64(g[i+1]))
		}
	}
	r.Printf("%d guids capacity for this port\n", capacity)
	return nil
}

func (r *run) sl2vl() error {
	n, err := r.NodeInfo(r.to)
	if err != nil {
		return r.lost(err, "node info query failed")
	}
	if r.port > n.NumPorts {
		return ibdiag.Failf("operation %s: invalid port number", r.name)
	}
	r.Printf("# SL2VL table: %s\n#                 SL: |", r.to)
	for sl := range 16 {
		r.Printf("%2d|", sl)
	}
	r.Printf("\n")
	if n.NodeType != mad.NodeSwitch {
		return r.sl2vlLine(0, 0)
	}
	for in := 0; in <= int(n.NumPorts); in++ {
		if err := r.sl2vlLine(uint8(in), r.port); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) sl2vlLine(in, out uint8) error {
	a, err := r.Get(r.to, mad.AttrSLtoVLMappingTable, uint32(in)<<8|uint32(out))
	if err != nil {
		return r.lost(err, "slvl query failed")
	}
	t, err := mad.ParseSLtoVLMappingTable(a.Data[:])
	if err != nil {
		return err
	}
	r.Printf("ports: in %2d, out %2d: |", in, out)
	for _, vl := range t {
		r.Printf("%2d|", vl)
	}
	r.Printf("\n")
	return nil
}

func (r *run) vlarb() error {
	if r.port == 0 {
		if plain, err := r.plainPort0(); plain || err != nil {
			return err
		}
	}
	p, err := r.PortInfo(r.to, uint32(r.port))
	if err != nil {
		return r.lost(err, "port info query failed")
	}
	r.Printf("# VLArbitration tables: %s port %d LowCap %d HighCap %d\n", r.to, r.port, p.VLArbitrationLowCap, p.VLArbitrationHighCap)
	if err := r.vlarbTable("Low", 1, int(p.VLArbitrationLowCap)); err != nil {
		return err
	}
	return r.vlarbTable("High", 3, int(p.VLArbitrationHighCap))
}

// plainPort0 reports, and prints, whether the port is a switch's base port 0, which has no such tables.
func (r *run) plainPort0() (bool, error) {
	n, err := r.NodeInfo(r.to)
	if err != nil {
		return false, r.lost(err, "node info query failed")
	}
	if n.NodeType != mad.NodeSwitch {
		return false, nil
	}
	sw, err := r.SwitchInfo(r.to)
	if err != nil {
		return false, r.lost(err, "switch info query failed")
	}
	if !sw.EnhancedPort0 {
		r.Printf("# No VLArbitration tables (BSP0): %s port 0\n", r.to)
	}
	return !sw.EnhancedPort0, nil
}

// vlarbTable shows one of the two tables, which is in two blocks from first on.
func (r *run) vlarbTable(name string, first uint32, entries int) error {
	if entries == 0 {
		return nil
	}
	r.Printf("# %s priority VL Arbitration Table:", name)
	const most = 2 * len(mad.VLArbitrationTable{})
	for shown := 0; shown < min(entries, most); shown += len(mad.VLArbitrationTable{}) {
		a, err := r.Get(r.to, mad.AttrVLArbitrationTable, first<<16|uint32(r.port))
		if err != nil {
			return r.lost(err, "vl arb query failed")
		}
		t, err := mad.ParseVLArbitrationTable(a.Data[:])
		if err != nil {
			return err
		}
		part := t[:min(entries-shown, len(t))]
		r.Printf("\nVL    : |%s", vlarbLine(part, func(e mad.VLArbitration) uint8 { return e.VL }))
		r.Printf("\nWEIGHT: |%s\n", vlarbLine(part, func(e mad.VLArbitration) uint8 { return e.Weight }))
		first++
	}
	return nil
}

func vlarbLine(entries []mad.VLArbitration, of func(mad.VLArbitration) uint8) (line string) {
	for _, e := range entries {
		line += fmt.Sprintf("0x%-2X|", of(e))
	}
	return line
}

// attrPortInfoExtended holds the modes of forward error correction (IBA 14.2.5.19).
const attrPortInfoExtended = 0x0033

func (r *run) portInfoExtended() error {
	if supported, err := r.hasPortInfoExtended(); !supported || err != nil {
		if err != nil {
			return err
		}
		return ibdiag.Failf("operation %s: port info extended not supported", r.name)
	}
	a, err := r.Get(r.to, attrPortInfoExtended, uint32(r.port))
	if err != nil {
		return r.lost(err, "port info extended query failed")
	}
	r.Printf("# Port info Extended: %s port %d\n%s", r.to, r.port, ibdiag.PMALines(a.Data[:], portInfoExtendedFields))
	return nil
}

// portInfoExtendedFields are described like those of performance attributes.
var portInfoExtendedFields = []mad.PMAField{
	{Name: "CapMask", Bit: 0, Width: 32, Mask: true}, {Name: "FECModeActive", Bit: 32, Width: 16},
	{Name: "FDRFECModeSupported", Bit: 48, Width: 16, Mask: true}, {Name: "FDRFECModeEnabled", Bit: 64, Width: 16, Mask: true},
	{Name: "EDRFECModeSupported", Bit: 80, Width: 16, Mask: true}, {Name: "EDRFECModeEnabled", Bit: 96, Width: 16, Mask: true},
	{Name: "HDRFECModeSupported", Bit: 112, Width: 16, Mask: true}, {Name: "HDRFECModeEnabled", Bit: 128, Width: 16, Mask: true},
	{Name: "NDRFECModeSupported", Bit: 144, Width: 16, Mask: true}, {Name: "NDRFECModeEnabled", Bit: 160, Width: 16, Mask: true},
}

// hasPortInfoExtended queries the port that knows: for a switch port 0.
func (r *run) hasPortInfoExtended() (bool, error) {
	n, err := r.NodeInfo(r.to)
	if err != nil {
		return false, ibdiag.Failf("node info query failed")
	}
	port := uint32(r.port)
	if n.NodeType == mad.NodeSwitch {
		port = 0
	}
	p, err := r.PortInfo(r.to, port)
	if err != nil {
		return false, ibdiag.Failf("port info query failed")
	}
	if p.CapabilityMask&mad.CapIsCapabilityMask2Supported == 0 {
		r.Warnf("is_port_info_extended_supported", "port info capability mask2 not supported")
		return false, nil
	}
	if p.CapabilityMask2&mad.Cap2IsPortInfoExtendedSupported == 0 {
		r.Warnf("is_port_info_extended_supported", "port info capability mask2 = 0x%x doesn't indicate PortInfoExtended support",
			p.CapabilityMask2)
		return false, nil
	}
	return true, nil
}
