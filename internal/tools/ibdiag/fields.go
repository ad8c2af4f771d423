package ibdiag

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// NotDisplayed is printed instead of a key.
const NotDisplayed = "<not displayed>"

// labelWidth is the column at which values begin, after the label, its colon and dots.
const labelWidth = 32

// line returns a line with a label, dots and a value.
func line(label, value string) string {
	return label + ":" + strings.Repeat(".", max(labelWidth-len(label), 0)) + value + "\n"
}

// Field is a line in the printed form of an attribute.
type Field[T any] struct {
	Label string
	Text  func(*T) string
}

// Lines returns the lines of an attribute, each after a prefix.
func Lines[T any](prefix string, a *T, fields []Field[T]) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(prefix + line(f.Label, f.Text(a)))
	}
	return b.String()
}

// Pick returns the fields with these labels, in the labels' order.
func Pick[T any](fields []Field[T], labels ...string) []Field[T] {
	var picked []Field[T]
	for _, l := range labels {
		for _, f := range fields {
			if f.Label == l {
				picked = append(picked, f)
			}
		}
	}
	return picked
}

func dec[V ~uint8 | ~uint16 | ~uint32 | ~uint64](v V) string { return fmt.Sprintf("%d", v) }

func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// NodeInfoFields are the lines of a NodeInfo.
var NodeInfoFields = []Field[mad.NodeInfo]{
	{"BaseVers", func(n *mad.NodeInfo) string { return dec(n.BaseVersion) }},
	{"ClassVers", func(n *mad.NodeInfo) string { return dec(n.ClassVersion) }},
	{"NodeType", func(n *mad.NodeInfo) string { return NodeType(n.NodeType) }},
	{"NumPorts", func(n *mad.NodeInfo) string { return dec(n.NumPorts) }},
	{"SystemGuid", func(n *mad.NodeInfo) string { return Hex64(n.SystemImageGUID) }},
	{"Guid", func(n *mad.NodeInfo) string { return Hex64(n.NodeGUID) }},
	{"PortGuid", func(n *mad.NodeInfo) string { return Hex64(n.PortGUID) }},
	{"PartCap", func(n *mad.NodeInfo) string { return dec(n.PartitionCap) }},
	{"DevId", func(n *mad.NodeInfo) string { return fmt.Sprintf("0x%04x", n.DeviceID) }},
	{"Revision", func(n *mad.NodeInfo) string { return fmt.Sprintf("0x%08x", n.Revision) }},
	{"LocalPort", func(n *mad.NodeInfo) string { return dec(n.LocalPortNum) }},
	{"VendorId", func(n *mad.NodeInfo) string { return fmt.Sprintf("0x%06x", n.VendorID) }},
}

// SwitchInfoFields are the lines of a SwitchInfo.
var SwitchInfoFields = []Field[mad.SwitchInfo]{
	{"LinearFdbCap", func(s *mad.SwitchInfo) string { return dec(s.LinearFDBCap) }},
	{"RandomFdbCap", func(s *mad.SwitchInfo) string { return dec(s.RandomFDBCap) }},
	{"McastFdbCap", func(s *mad.SwitchInfo) string { return dec(s.MulticastFDBCap) }},
	{"LinearFdbTop", func(s *mad.SwitchInfo) string { return dec(s.LinearFDBTop) }},
	{"DefPort", func(s *mad.SwitchInfo) string { return dec(s.DefaultPort) }},
	{"DefMcastPrimPort", func(s *mad.SwitchInfo) string { return dec(s.DefaultMulticastPrimaryPort) }},
	{"DefMcastNotPrimPort", func(s *mad.SwitchInfo) string { return dec(s.DefaultMulticastNotPrimaryPort) }},
	{"LifeTime", func(s *mad.SwitchInfo) string { return dec(s.LifeTimeValue) }},
	{"StateChange", func(s *mad.SwitchInfo) string { return bit(s.PortStateChange) }},
	{"OptSLtoVLMapping", func(s *mad.SwitchInfo) string { return dec(s.OptimizedSLtoVLMappingProgramming) }},
	{"LidsPerPort", func(s *mad.SwitchInfo) string { return dec(s.LIDsPerPort) }},
	{"PartEnforceCap", func(s *mad.SwitchInfo) string { return dec(s.PartitionEnforcementCap) }},
	{"InboundPartEnf", func(s *mad.SwitchInfo) string { return bit(s.InboundEnforcementCap) }},
	{"OutboundPartEnf", func(s *mad.SwitchInfo) string { return bit(s.OutboundEnforcementCap) }},
	{"FilterRawInbound", func(s *mad.SwitchInfo) string { return bit(s.FilterRawInboundCap) }},
	{"FilterRawOutbound", func(s *mad.SwitchInfo) string { return bit(s.FilterRawOutboundCap) }},
	{"EnhancedPort0", func(s *mad.SwitchInfo) string { return bit(s.EnhancedPort0) }},
	{"MulticastFDBTop", func(s *mad.SwitchInfo) string { return fmt.Sprintf("0x%04x", s.MulticastFDBTop) }},
}

// MellanoxExtendedFields are the lines of the vendor's ExtendedPortInfo.
var MellanoxExtendedFields = []Field[mad.ExtendedPortInfo]{
	{"StateChangeEnable", func(e *mad.ExtendedPortInfo) string { return fmt.Sprintf("0x%02x", e.StateChangeEnable) }},
	{"LinkSpeedSupported", func(e *mad.ExtendedPortInfo) string { return fmt.Sprintf("0x%02x", e.LinkSpeedSupported) }},
	{"LinkSpeedEnabled", func(e *mad.ExtendedPortInfo) string { return fmt.Sprintf("0x%02x", e.LinkSpeedEnabled) }},
	{"LinkSpeedActive", func(e *mad.ExtendedPortInfo) string { return fmt.Sprintf("0x%02x", e.LinkSpeedActive) }},
}

// PMALines returns the lines of some fields of a performance attribute.
func PMALines(data []byte, fields []mad.PMAField) string {
	var b strings.Builder
	for _, f := range fields {
		v := f.Get(data)
		text := dec(v)
		if f.Mask {
			text = fmt.Sprintf("0x%0*x", (f.Width+7)/8*2, v)
		}
		b.WriteString(line(f.Name, text))
	}
	return b.String()
}

// Hex64 formats a GUID or key with all of its digits.
func Hex64(v uint64) string { return fmt.Sprintf("0x%016x", v) }

// NodeType returns the name of a type of node.
func NodeType(t mad.NodeType) string {
	switch t {
	case mad.NodeCA, mad.NodeSwitch, mad.NodeRouter:
		return t.String()
	}
	return fmt.Sprintf("?(%d)?", t)
}

// MTU returns the size for an MTU code.
func MTU(code ib.MTU) string {
	if code >= 1 && code <= 5 {
		return dec(uint16(128) << code)
	}
	return fmt.Sprintf("?(%d)", uint8(code))
}
