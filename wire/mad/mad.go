// Package mad holds management datagrams: the common header, the messages of the
// communication management class, which set up and tear down connections on QP1, and the
// packets and attributes of subnet management.
//
// A MAD is always 256 bytes. Each message is a struct with every field of the specification; its Append
// writes the complete MAD and its Parse function reads one. Attributes are structs too, which are written
// to and read from the data of a MAD without allocation; the agent decides what a Set may change. Parse
// functions check only that the bytes are that message (length, versions, class, method, attribute); the
// connection manager decides whether a value can be granted. Offsets in this package count from the start
// of the MAD, as captures show them; the tables of IBA 12.6 count from 24, the end of the common header.
package mad

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// Len is the length of every MAD (IBA 13.4.2).
	Len = 256
	// HeaderLen is the length of the common MAD header.
	HeaderLen = 24
	// BaseVersion is the MAD base version.
	BaseVersion = 1
)

// Management classes (IBA 13.4.4).
const (
	ClassSubnetLID = 0x01 // subnet management, LID routed
	ClassSubnetAdm = 0x03 // subnet administration
	ClassPerf      = 0x04 // performance management
	ClassBM        = 0x05 // baseboard management
	ClassDeviceMgt = 0x06
	ClassCM        = 0x07 // communication management
	ClassSNMP      = 0x08
	ClassSubnetDir = 0x81 // subnet management, directed route
	ClassVersionCM = 2
)

// Methods (IBA 13.4.5).
const (
	MethodGet         = 0x01
	MethodSet         = 0x02
	MethodSend        = 0x03
	MethodTrap        = 0x05
	MethodTrapRepress = 0x07 // the answer to a trap
	MethodGetResp     = 0x81 // the answer to a get or set
)

// Status bits of the common header (IBA 13.4.7).
const (
	StatusOK                   = 0x0000
	StatusBusy                 = 0x0001
	StatusRedirect             = 0x0002
	StatusBadVersion           = 0x0004
	StatusMethodUnsupported    = 0x0008
	StatusAttributeUnsupported = 0x000c
	StatusInvalidField         = 0x001c
)

// Attribute IDs of the communication management class (IBA 16.7.2).
const (
	AttrClassPortInfo = 0x0001
	AttrREQ           = 0x0010
	AttrMRA           = 0x0011
	AttrREJ           = 0x0012
	AttrREP           = 0x0013
	AttrRTU           = 0x0014
	AttrDREQ          = 0x0015
	AttrDREP          = 0x0016
	AttrSIDRREQ       = 0x0017
	AttrSIDRREP       = 0x0018
	AttrLAP           = 0x0019
	AttrAPR           = 0x001a
)

// Header is the common MAD header (IBA 13.4.3).
type Header struct {
	BaseVersion       uint8
	Class             uint8
	ClassVersion      uint8
	Method            uint8
	Status            uint16
	ClassSpecific     uint16
	TransactionID     uint64
	AttributeID       uint16
	AttributeModifier uint32
}

// Append appends the header's 24 bytes to b.
func (h Header) Append(b []byte) []byte {
	b = append(b, h.BaseVersion, h.Class, h.ClassVersion, h.Method)
	b = binary.BigEndian.AppendUint16(b, h.Status)
	b = binary.BigEndian.AppendUint16(b, h.ClassSpecific)
	b = binary.BigEndian.AppendUint64(b, h.TransactionID)
	b = binary.BigEndian.AppendUint16(b, h.AttributeID)
	b = append(b, 0, 0)
	return binary.BigEndian.AppendUint32(b, h.AttributeModifier)
}

// ParseHeader reads the common header of a MAD of exactly Len bytes. Only the length and
// the base version are checked. The error is an *Error.
func ParseHeader(b []byte) (Header, error) {
	if len(b) != Len {
		return Header{}, &Error{"length", uint64(len(b)), "256"}
	}
	if b[0] != BaseVersion {
		return Header{}, &Error{"base version", uint64(b[0]), "1"}
	}
	return Header{
		BaseVersion: b[0], Class: b[1], ClassVersion: b[2], Method: b[3],
		Status:            binary.BigEndian.Uint16(b[4:]),
		ClassSpecific:     binary.BigEndian.Uint16(b[6:]),
		TransactionID:     binary.BigEndian.Uint64(b[8:]),
		AttributeID:       binary.BigEndian.Uint16(b[16:]),
		AttributeModifier: binary.BigEndian.Uint32(b[20:]),
	}, nil
}

// Error says which field makes a MAD unreadable. Test for it with errors.As.
type Error struct {
	Field string // the specification's name, in lower case
	Got   uint64
	Want  string // what is allowed
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("mad: %s is %#x, want %s", e.Field, e.Got, e.Want) }

// Message is a CM message: *REQ, *MRA, *REJ, *REP, *RTU, *DREQ, *DREP, *SIDRREQ, *SIDRREP, *LAP or *APR.
type Message interface {
	// Append appends the complete MAD, Len bytes, to b.
	Append(b []byte) []byte
	// Attribute returns the attribute ID, which is the message's type.
	Attribute() uint16
	// Transaction returns the transaction ID.
	Transaction() uint64
}

// DecodeCM reads any CM message. The error is an *Error. If its field is "class version", a REQ is to be
// rejected with RejectInvalidClassVersion; "attribute ID" is also returned for ClassPortInfo, which is not
// a connection message.
func DecodeCM(b []byte) (Message, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	switch h.AttributeID {
	case AttrREQ:
		return message(ParseREQ(b))
	case AttrMRA:
		return message(ParseMRA(b))
	case AttrREJ:
		return message(ParseREJ(b))
	case AttrREP:
		return message(ParseREP(b))
	case AttrRTU:
		return message(ParseRTU(b))
	case AttrDREQ:
		return message(ParseDREQ(b))
	case AttrDREP:
		return message(ParseDREP(b))
	case AttrSIDRREQ:
		return message(ParseSIDRREQ(b))
	case AttrSIDRREP:
		return message(ParseSIDRREP(b))
	case AttrLAP:
		return message(ParseLAP(b))
	case AttrAPR:
		return message(ParseAPR(b))
	}
	return nil, &Error{"attribute ID", uint64(h.AttributeID), "a CM message, 0x10 to 0x1a"}
}

// message turns a parsed struct into a Message, but returns none for a failed parse.
func message[T any, P interface {
	*T
	Message
}](m T, err error) (Message, error) {
	if err != nil {
		return nil, err
	}
	return P(&m), nil
}

// start appends a zeroed MAD with the header of a CM message to b and returns the extended slice and the
// MAD in it.
func start(b []byte, attr uint16, tid uint64) (all, mad []byte) {
	h := Header{BaseVersion: BaseVersion, Class: ClassCM, ClassVersion: ClassVersionCM, Method: MethodSend, TransactionID: tid,
		AttributeID: attr}
	b = h.Append(b)
	b = append(b, make([]byte, Len-HeaderLen)...)
	return b, b[len(b)-Len:]
}

// open checks that b is the CM message with that attribute and returns its transaction ID.
func open(b []byte, attr uint16) (tid uint64, err error) {
	h, err := ParseHeader(b)
	if err != nil {
		return 0, err
	}
	switch {
	case h.Class != ClassCM:
		return 0, &Error{"management class", uint64(h.Class), "7, communication management"}
	case h.ClassVersion != ClassVersionCM:
		return 0, &Error{"class version", uint64(h.ClassVersion), "2"}
	case h.Method != MethodSend:
		return 0, &Error{"method", uint64(h.Method), "3, send"}
	case h.AttributeID != attr:
		return 0, &Error{"attribute ID", uint64(h.AttributeID), fmt.Sprintf("%#x", attr)}
	}
	return h.TransactionID, nil
}

func get16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func get24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }
func get32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func get64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

func put16(b []byte, v uint16) { binary.BigEndian.PutUint16(b, v) }
func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }
func put32(b []byte, v uint32) { binary.BigEndian.PutUint32(b, v) }
func put64(b []byte, v uint64) { binary.BigEndian.PutUint64(b, v) }

func getQPN(b []byte) ib.QPN { return ib.QPN(get24(b)) }
func getPSN(b []byte) ib.PSN { return ib.PSN(get24(b)) }

func flag(on bool, mask byte) byte {
	if on {
		return mask
	}
	return 0
}
