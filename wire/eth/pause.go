package eth

import (
	"encoding/binary"
	"time"
)

// TypeMACControl is the Ethernet type of MAC control frames, pauses among them (IEEE 802.3, 31.4).
const TypeMACControl EtherType = 0x8808

// PauseMAC is where pauses go (IEEE 802.3, 31B.1). No bridge forwards it.
var PauseMAC = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}

const (
	opcodePause         = 0x0001
	opcodePriorityPause = 0x0101

	pauseOpcode = EthernetLen
	pauseQuanta = EthernetLen + 2
	pfcEnabled  = EthernetLen + 2
	pfcQuanta   = EthernetLen + 4
	pfcEnd      = pfcQuanta + 2*8

	// PauseLen is the length of a pause frame: the shortest of Ethernet, without frame check sequence.
	PauseLen = 60
	// quantumBits is how many bit times a quantum lasts (IEEE 802.3, 31B.2).
	quantumBits = 512
)

// Pause is a MAC control frame that asks the other end of a link to be silent: the global pause of IEEE 802.3, annex 31B, or the
// priority-based one of annex 31D (PFC).
type Pause struct {
	// Src is the port that asks.
	Src MAC
	// PerPriority says that the priorities in Enabled are paused or resumed; false: the whole link, for Quanta[0].
	PerPriority bool
	// Enabled has bit p for priority p. The others are left as they are.
	Enabled uint8
	// Quanta is for how long, in quanta of 512 bit times of the link; 0 ends a pause.
	Quanta [8]uint16
}

// Append adds the frame to b, PauseLen bytes.
func (p *Pause) Append(b []byte) []byte {
	var f [PauseLen]byte
	h := Ethernet{Dst: PauseMAC, Src: p.Src, Type: TypeMACControl}
	h.Put(f[:])
	if !p.PerPriority {
		binary.BigEndian.PutUint16(f[pauseOpcode:], opcodePause)
		binary.BigEndian.PutUint16(f[pauseQuanta:], p.Quanta[0])
		return append(b, f[:]...)
	}
	binary.BigEndian.PutUint16(f[pauseOpcode:], opcodePriorityPause)
	binary.BigEndian.PutUint16(f[pfcEnabled:], uint16(p.Enabled))
	for i, q := range p.Quanta {
		if p.Enabled>>i&1 != 0 {
			binary.BigEndian.PutUint16(f[pfcQuanta+2*i:], q)
		}
	}
	return append(b, f[:]...)
}

// ParsePause decodes a frame without VLAN tag whose type is TypeMACControl. What a clear bit of the vector leaves out is 0 in
// Quanta; the upper byte of the vector is reserved and ignored. The error is a *LengthError or a *FieldError, also for other
// MAC control frames.
func ParsePause(b []byte) (Pause, error) {
	if len(b) < pauseQuanta+2 {
		return Pause{}, short("pause frame", len(b), pauseQuanta+2)
	}
	if t := binary.BigEndian.Uint16(b[EthernetLen-2:]); EtherType(t) != TypeMACControl {
		return Pause{}, bad("ethernet type", int(t), "0x8808")
	}
	p := Pause{Src: MAC(b[6:])}
	switch op := binary.BigEndian.Uint16(b[pauseOpcode:]); op {
	case opcodePause:
		p.Quanta[0] = binary.BigEndian.Uint16(b[pauseQuanta:])
		return p, nil
	case opcodePriorityPause:
	default:
		return Pause{}, bad("MAC control opcode", int(op), "1 (pause) or 0x101 (priority-based pause)")
	}
	if len(b) < pfcEnd {
		return Pause{}, short("priority-based pause frame", len(b), pfcEnd)
	}
	p.PerPriority, p.Enabled = true, b[pfcEnabled+1]
	for i := range p.Quanta {
		if p.Enabled>>i&1 != 0 {
			p.Quanta[i] = binary.BigEndian.Uint16(b[pfcQuanta+2*i:])
		}
	}
	return p, nil
}

// PauseTime returns how long so many quanta are at a rate in bits per second, not 0.
func PauseTime(quanta uint16, rate uint64) time.Duration {
	return time.Duration(uint64(quanta) * quantumBits * uint64(time.Second) / rate)
}
