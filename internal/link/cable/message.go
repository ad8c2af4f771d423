package cable

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Messages between an adapter and the fabric that it is plugged into, besides the frames. Each is a packet
// of a socket that preserves message boundaries: its kind, then the fields, little-endian.
const (
	kindHello     = 1  // of the adapter: Hello
	kindRefused   = 2  // of the fabric: a text
	kindWelcome   = 3  // of the fabric: Welcome, with the descriptors of the memory and of the bell
	kindPort      = 4  // of the fabric: the port's state
	kindViolation = 5  // of the adapter
	kindEthernet  = 6  // of the adapter: Hello of one whose port is Ethernet
	kindWire      = 7  // of the fabric: the state of an Ethernet wire
	kindPauses    = 8  // of the adapter: which pauses its Ethernet port obeys and sends
	kindIncident  = 9  // of the fabric, to an Ethernet adapter that asks for them: Incident
	kindVirtual   = 10 // of the adapter: the virtual ports of its InfiniBand port, as many as there are

	// version is the version of the protocol: both ends must have the same.
	version = 4
	magic   = 0x43564253

	// MaxMessage is the maximum length of a message.
	MaxMessage = 4096
	nameLen    = 64
)

// messageError says what is wrong with a message of the other end.
type messageError struct{ Problem string }

// Error implements error.
func (e *messageError) Error() string { return "cable: " + e.Problem }

// Hello is an adapter's first message.
type Hello struct {
	Node string // id or description of the fabric's node; empty: the first whose port is free
	Port uint8  // 0: the first
	VCRC bool   // frames in shared memory carry a variant CRC
	// Ethernet says that frames are whole Ethernet frames, without frame check sequence, and that the node is a host.
	Ethernet bool
	// Incidents says that the adapter wants to be told of incidents of the Ethernet, which is so over UDP only.
	Incidents bool
	Program   string // name of the program, for display
}

// The flags of a hello. A fabric that does not know the second takes it for the first, which is always so over UDP.
const (
	helloVCRC      = 1
	helloIncidents = 2
)

// Welcome is the answer to a Hello that is accepted.
type Welcome struct {
	Fabric [16]byte // unique to this fabric
	Node   string
	Port   uint8
}

type wireHello struct {
	Magic, Version uint32
	Port, Flags    uint8
	Node, Program  [nameLen]byte
}

type wireWelcome struct {
	Fabric [16]byte
	Port   uint8
	Node   [nameLen]byte
}

// mostVirtual is how many virtual ports messages have at most.
const mostVirtual = 32

// wireVirtual is a virtual port behind a wirePort, of which there are as many as the message has room for.
type wireVirtual struct {
	Index            uint16
	State            uint8
	LID              uint16
	GUID, Reregister uint64
	PKeys            [link.VirtualKeys]uint16
}

// wireWanted is a virtual port that an adapter wants.
type wireWanted struct {
	Index uint16
	GUID  uint64
}

// wirePort is link.Port without its Fabric and its virtual ports.
type wirePort struct {
	State, Physical, LMC, SMSL, MTU, MaxMTU, Width, Speed, SubnetTimeout uint8
	LID, SMLID                                                           uint16
	Prefix, NodeGUID, Reregister                                         uint64
	Capabilities                                                         uint32
	Virtualized                                                          uint8
	SLtoVL                                                               [16]uint8
	GUIDs                                                                [link.GUIDRows]uint64
	PKeys                                                                [64]uint16
}

// wireWire is link.State.
type wireWire struct {
	Up    uint8
	Speed uint64
}

// wirePauses is two of pause.Scope.
type wirePauses struct{ Obeys, ObeyedPriorities, Asks, AskedPriorities uint8 }

type wireViolation struct {
	Kind             uint8
	SL               uint8
	SLID, DLID       uint16
	Key              uint32
	SourceQP, DestQP uint32
	SGID, DGID       [16]byte
}

func encode(kind uint8, fields any) []byte {
	b, err := binary.Append([]byte{kind}, binary.LittleEndian, fields)
	if err != nil {
		panic(err) // the fields are all of fixed size
	}
	return b
}

// decode reads the fields of a message of the given kind.
func decode(b []byte, kind uint8, name string, fields any) error {
	if len(b) == 0 || b[0] != kind {
		return &messageError{fmt.Sprintf("a message of %d bytes is no %s", len(b), name)}
	}
	if want := 1 + binary.Size(fields); len(b) != want {
		return &messageError{fmt.Sprintf("%s has %d bytes, want %d", name, len(b), want)}
	}
	_, err := binary.Decode(b[1:], binary.LittleEndian, fields)
	return err
}

func put(name string) (b [nameLen]byte) {
	copy(b[:nameLen-1], name)
	return b
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(bytes.ToValidUTF8(b, []byte("?")))
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// Append appends the message to b.
func (h *Hello) Append(b []byte) []byte {
	kind := uint8(kindHello)
	if h.Ethernet {
		kind = kindEthernet
	}
	flags := flag(h.VCRC)*helloVCRC | flag(h.Incidents)*helloIncidents
	return append(b, encode(kind, wireHello{magic, version, h.Port, flags, put(h.Node), put(h.Program)})...)
}

// ParseHello reads the first message of an adapter. The error is a *messageError.
func ParseHello(b []byte) (Hello, error) {
	var w wireHello
	kind := uint8(kindHello)
	if len(b) > 0 && b[0] == kindEthernet {
		kind = kindEthernet
	}
	if err := decode(b, kind, "hello", &w); err != nil {
		return Hello{}, err
	}
	if w.Magic != magic || w.Version != version {
		return Hello{}, &messageError{fmt.Sprintf("the adapter has version %d of the protocol, the fabric %d", w.Version, version)}
	}
	return Hello{Node: text(w.Node[:]), Port: w.Port, VCRC: w.Flags&helloVCRC != 0, Incidents: w.Flags&helloIncidents != 0,
		Program: text(w.Program[:]), Ethernet: kind == kindEthernet}, nil
}

// Refuse is the message that refuses a Hello.
func Refuse(why string) []byte {
	return append([]byte{kindRefused}, why[:min(len(why), MaxMessage-1)]...)
}

// Append appends the message to b.
func (w *Welcome) Append(b []byte) []byte {
	return append(b, encode(kindWelcome, wireWelcome{w.Fabric, w.Port, put(w.Node)})...)
}

// parseWelcome reads the answer to a Hello. The error is a *RefusedError or a *messageError.
func parseWelcome(b []byte) (Welcome, error) {
	if len(b) > 0 && b[0] == kindRefused {
		return Welcome{}, &RefusedError{text(b[1:])}
	}
	var w wireWelcome
	if err := decode(b, kindWelcome, "welcome", &w); err != nil {
		return Welcome{}, err
	}
	return Welcome{Fabric: w.Fabric, Node: text(w.Node[:]), Port: w.Port}, nil
}

// RefusedError says why a fabric does not let an adapter be plugged in. Test for it with errors.As.
type RefusedError struct{ Why string }

// Error implements error.
func (e *RefusedError) Error() string { return "the fabric refuses: " + e.Why }

// State is what a fabric tells an adapter: the state of its InfiniBand port or, if the adapter is Ethernet, of its wire.
type State struct {
	Ethernet bool
	Port     link.Port
	Wire     link.State
}

// Message returns the message that tells an adapter the state.
func (s *State) Message() []byte {
	if s.Ethernet {
		return encode(kindWire, wireWire{flag(s.Wire.Up), s.Wire.Speed})
	}
	return PortMessage(&s.Port)
}

// parseState reads what a fabric tells an adapter. The error is a *messageError.
func parseState(b []byte) (s State, err error) {
	if len(b) == 0 || b[0] != kindWire {
		s.Port, err = parsePort(b)
		return s, err
	}
	var w wireWire
	err = decode(b, kindWire, "wire", &w)
	return State{Ethernet: true, Wire: link.State{Up: w.Up != 0, Speed: w.Speed}}, err
}

// PortMessage returns the message that tells an adapter its port's state.
func PortMessage(p *link.Port) []byte {
	w := wirePort{
		State: uint8(p.State), Physical: uint8(p.Physical), LMC: p.LMC, SMSL: p.SMSL, MTU: uint8(p.MTU), MaxMTU: uint8(p.MaxMTU),
		Width: uint8(p.Width),
		Speed: uint8(p.Speed), SubnetTimeout: p.SubnetTimeout, LID: uint16(p.LID), SMLID: uint16(p.SMLID), Prefix: p.Prefix,
		NodeGUID:   p.NodeGUID,
		Reregister: p.Reregister, Capabilities: p.Capabilities, SLtoVL: p.SLtoVL, Virtualized: flag(p.Virtualized),
	}
	copy(w.GUIDs[:], p.GUIDs)
	for i, k := range p.PKeys[:min(len(p.PKeys), len(w.PKeys))] {
		w.PKeys[i] = uint16(k)
	}
	b := encode(kindPort, w)
	for i := range p.Virtual[:min(len(p.Virtual), mostVirtual)] {
		v := &p.Virtual[i]
		x := wireVirtual{Index: v.Index, State: uint8(v.State), LID: uint16(v.LID), GUID: v.GUID, Reregister: v.Reregister}
		for n, k := range v.PKeys[:min(len(v.PKeys), len(x.PKeys))] {
			x.PKeys[n] = uint16(k)
		}
		b = append(b, encode(0, x)[1:]...)
	}
	return b
}

// several splits off what follows a message of n bytes, in pieces as large as one of fields; they are at most mostVirtual. The error is a
// *messageError.
func several(b []byte, n int, name string, fields any) (first, rest []byte, err error) {
	size := binary.Size(fields)
	if len(b) < n || (len(b)-n)%size != 0 || (len(b)-n)/size > mostVirtual {
		return nil, nil, &messageError{fmt.Sprintf("%s has %d bytes, want %d and up to %d times %d", name, len(b), n, mostVirtual, size)}
	}
	return b[:n], b[n:], nil
}

// parsePort reads a port's state. The error is a *messageError.
func parsePort(b []byte) (link.Port, error) {
	var w wirePort
	b, virtual, err := several(b, 1+binary.Size(w), "port", wireVirtual{})
	if err != nil {
		return link.Port{}, err
	}
	if err := decode(b, kindPort, "port", &w); err != nil {
		return link.Port{}, err
	}
	p := link.Port{
		State: mad.PortState(w.State), Physical: mad.PortPhysicalState(w.Physical), LMC: w.LMC & 7, SMSL: w.SMSL & 15, MTU: ib.MTU(w.MTU),
		MaxMTU: ib.MTU(w.MaxMTU),
		Width:  mad.Width(w.Width), Speed: mad.Speed(w.Speed), SubnetTimeout: w.SubnetTimeout, LID: ib.LID(w.LID), SMLID: ib.LID(w.SMLID),
		Prefix: w.Prefix, NodeGUID: w.NodeGUID,
		Reregister: w.Reregister, Capabilities: w.Capabilities, SLtoVL: w.SLtoVL, GUIDs: w.GUIDs[:], PKeys: make([]ib.PKey, len(w.PKeys)),
		Virtualized: w.Virtualized != 0,
	}
	for i, k := range w.PKeys {
		p.PKeys[i] = ib.PKey(k)
	}
	if p.MTU < ib.MTU256 || p.MTU > ib.MTU4096 || p.MaxMTU < ib.MTU256 || p.MaxMTU > ib.MTU4096 {
		return link.Port{}, &messageError{fmt.Sprintf("port has MTU %d of %d, want 1 to 5", w.MTU, w.MaxMTU)}
	}
	for len(virtual) > 0 {
		var x wireVirtual
		n, err := binary.Decode(virtual, binary.LittleEndian, &x)
		if err != nil {
			return link.Port{}, err
		}
		virtual = virtual[n:]
		v := link.VirtualPort{Index: x.Index, State: mad.PortState(x.State), LID: ib.LID(x.LID), GUID: x.GUID, Reregister: x.Reregister,
			PKeys: make([]ib.PKey, len(x.PKeys))}
		for i, k := range x.PKeys {
			v.PKeys[i] = ib.PKey(k)
		}
		p.Virtual = append(p.Virtual, v)
	}
	return p, nil
}

// virtualMessage returns the message that tells the fabric which virtual ports there are.
func virtualMessage(want []link.VirtualPort) []byte {
	b := []byte{kindVirtual}
	for _, v := range want[:min(len(want), mostVirtual)] {
		b = append(b, encode(0, wireWanted{v.Index, v.GUID})[1:]...)
	}
	return b
}

// ParseVirtual parses what virtualMessage returns; ok is false if it is another message. The error is a *messageError.
func ParseVirtual(b []byte) (want []link.VirtualPort, ok bool, err error) {
	if len(b) == 0 || b[0] != kindVirtual {
		return nil, false, nil
	}
	_, b, err = several(b, 1, "virtual ports", wireWanted{})
	if err != nil {
		return nil, true, err
	}
	for len(b) > 0 {
		var x wireWanted
		n, err := binary.Decode(b, binary.LittleEndian, &x)
		if err != nil {
			return nil, true, err
		}
		b = b[n:]
		want = append(want, link.VirtualPort{Index: x.Index, GUID: x.GUID})
	}
	return want, true, nil
}

// violationMessage returns the message that tells the fabric of a packet an adapter has refused.
func violationMessage(v *link.Violation) []byte {
	return encode(kindViolation, wireViolation{uint8(v.Kind), v.SL, uint16(v.SLID), uint16(v.DLID), v.Key, uint32(v.SourceQP),
		uint32(v.DestQP), v.SGID, v.DGID})
}

// ParseViolation parses what violationMessage returns. The error is a *messageError.
func ParseViolation(b []byte) (link.Violation, error) {
	var w wireViolation
	if err := decode(b, kindViolation, "violation", &w); err != nil {
		return link.Violation{}, err
	}
	return link.Violation{Kind: link.ViolationKind(w.Kind), SL: w.SL & 15, SLID: ib.LID(w.SLID), DLID: ib.LID(w.DLID), Key: w.Key,
		SourceQP: ib.QPN(w.SourceQP) & ib.QPNMask, DestQP: ib.QPN(w.DestQP) & ib.QPNMask, SGID: w.SGID, DGID: w.DGID}, nil
}

// pausesMessage returns the message that tells the fabric which pauses an adapter's port obeys and sends: its host's end of the link
// does the same, since that is where what the adapter sends waits.
func pausesMessage(obeys, asks pause.Scope) []byte {
	return encode(kindPauses, wirePauses{uint8(obeys.Mode), obeys.Priorities, uint8(asks.Mode), asks.Priorities})
}

// ParsePauses parses what pausesMessage returns. The error is a *messageError.
func ParsePauses(b []byte) (obeys, asks pause.Scope, err error) {
	var w wirePauses
	if err = decode(b, kindPauses, "pauses", &w); err != nil {
		return obeys, asks, err
	}
	if obeys, err = scopeOf(w.Obeys, w.ObeyedPriorities); err == nil {
		asks, err = scopeOf(w.Asks, w.AskedPriorities)
	}
	return obeys, asks, err
}

func scopeOf(mode, priorities uint8) (pause.Scope, error) {
	switch pause.Mode(mode) {
	case pause.None:
		return pause.Scope{}, nil
	case pause.Global:
		return pause.Whole, nil
	case pause.PerPriority:
		return pause.Only(priorities), nil
	}
	return pause.Scope{}, &messageError{fmt.Sprintf("pauses are of kind %d, want 0 to %d", mode, pause.PerPriority)}
}
