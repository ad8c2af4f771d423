// Package socket defines the protocol between programs and a fabric's management service, which
// corresponds to system calls on /dev/infiniband/umadN and files in /sys/class/infiniband on a machine
// with an adapter. The C library libibumad.so.3 of clib/umad speaks it, and the transport of
// internal/umad; docs/fabric.md describes it.
//
// It runs over a unix socket that preserves message boundaries (SOCK_SEQPACKET). The first message of a
// connection is a Request, which is answered. After a successful answer to Open the connection is an open
// port, on which programs send Register, Unregister and Send messages, and receive only MADs: an
// ib_user_mad header of 64 bytes and the MAD. OpenMany is Open for programs with many requests in
// progress: both sides may then put several MADs into one message.
package socket

import (
	"bytes"
	"encoding/binary"
	"os"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// The environment of a program.
const (
	// Variable holds the path of the socket.
	Variable = "SOFTVPI_FABRIC"
	// NodeVariable holds the node to be: its ID or description; the fabric's first if it is empty.
	NodeVariable = "SOFTVPI_NODE"
)

// version is the version of the protocol.
const version = 1

// Kinds of messages to the service.
const (
	List       = 1 // the adapters of a node
	Adapter    = 2 // what is known about one
	Port       = 3 // what is known about a port
	Open       = 4 // open a port
	ManagerAt  = 5 // path of a file that makes the port one with a subnet manager while it is open
	Register   = 6 // an agent; the answer is sent on the socket that comes with it
	Unregister = 7 // likewise
	Send       = 8 // a MAD
	OpenMany   = 9 // Open, but messages may contain several MADs
	// SendMany is Send for several MADs of 256 bytes with their headers, one after the other, on a port
	// opened by OpenMany. Messages in the other direction also contain one or more MADs there, with the
	// length of each in its header.
	SendMany = 10
)

// Lengths of fields and messages.
const (
	NodeLen     = 72
	NameLen     = 20
	requestLen  = 104
	registerLen = 48
	AnswerLen   = 8
	SendLen     = 8                         // before the header
	EachLen     = agent.HeaderLen + mad.Len // length of a MAD in SendMany
	Together    = 24                        // maximum of MADs put into one message
	// MaxInline is the length of the longest MAD in a message. A longer one is in a sealed memory file
	// sent with the message, which then holds the first 256 bytes.
	MaxInline = 32 << 10
	// MaxMessage is the length of the longest message.
	MaxMessage = SendLen + agent.HeaderLen + MaxInline
)

// Path returns the default socket path of a fabric with that name.
func Path(name string) string { return paths.Fabric(name) }

// FromEnvironment returns the socket and the node that the environment names; empty: none.
func FromEnvironment() (path, node string) { return os.Getenv(Variable), os.Getenv(NodeVariable) }

// Request is the first message of a connection.
type Request struct {
	Kind uint32
	Node string
	Name string // of the adapter
	Port int32
}

// Append appends the message to b. Names are truncated to their fields.
func (r *Request) Append(b []byte) []byte {
	var m [requestLen]byte
	binary.LittleEndian.PutUint32(m[0:], r.Kind)
	binary.LittleEndian.PutUint32(m[4:], version)
	copy(m[8:8+NodeLen-1], r.Node)
	copy(m[80:80+NameLen-1], r.Name)
	binary.LittleEndian.PutUint32(m[100:], uint32(r.Port))
	return append(b, m[:]...)
}

// ParseRequest parses a message; false: it is invalid, or of another version.
func ParseRequest(b []byte) (Request, bool) {
	if len(b) != requestLen || binary.LittleEndian.Uint32(b[4:]) != version {
		return Request{}, false
	}
	return Request{Kind: binary.LittleEndian.Uint32(b), Node: text(b[8:80]), Name: text(b[80:100]),
		Port: int32(binary.LittleEndian.Uint32(b[100:]))}, true
}

func text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

func put(b []byte, s string) { copy(b[:len(b)-1], s) }

// Names returns the answer to List: the number of names, and each name in 20 bytes.
func Names(names []string) []byte {
	b := Answer(0, uint32(len(names)))
	for _, n := range names {
		var f [NameLen]byte
		put(f[:], n)
		b = append(b, f[:]...)
	}
	return b
}

// Answer returns the head of every answer: an errno and a number.
func Answer(errno, value uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, errno), value)
}

// ParseAnswer parses the head; false: it is too short.
func ParseAnswer(b []byte) (errno, value uint32, ok bool) {
	if len(b) < AnswerLen {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), true
}

// AdapterInfo is what programs learn about an adapter: struct umad_ca.
type AdapterInfo struct {
	NodeType   uint32
	First      uint32 // first port: 0 for a switch, 1 for others
	Ports      uint32 // number of the last port
	Firmware   string // up to 19 bytes
	Type       string // up to 39
	Hardware   string // up to 19
	NodeGUID   uint64
	SystemGUID uint64
}

// adapterLen is the length of an AdapterInfo in an answer.
const adapterLen = 12 + 20 + 40 + 20 + 4 + 16

// Append appends it to an answer.
func (a *AdapterInfo) Append(b []byte) []byte {
	var m [adapterLen]byte
	binary.LittleEndian.PutUint32(m[0:], a.NodeType)
	binary.LittleEndian.PutUint32(m[4:], a.First)
	binary.LittleEndian.PutUint32(m[8:], a.Ports)
	put(m[12:32], a.Firmware)
	put(m[32:72], a.Type)
	put(m[72:92], a.Hardware)
	binary.BigEndian.PutUint64(m[96:], a.NodeGUID)
	binary.BigEndian.PutUint64(m[104:], a.SystemGUID)
	return append(b, m[:]...)
}

// ParseAdapter parses it; false: it is too short.
func ParseAdapter(b []byte) (AdapterInfo, bool) {
	if len(b) < adapterLen {
		return AdapterInfo{}, false
	}
	return AdapterInfo{NodeType: binary.LittleEndian.Uint32(b), First: binary.LittleEndian.Uint32(b[4:]),
		Ports:    binary.LittleEndian.Uint32(b[8:]),
		Firmware: text(b[12:32]), Type: text(b[32:72]), Hardware: text(b[72:92]),
		NodeGUID: binary.BigEndian.Uint64(b[96:]), SystemGUID: binary.BigEndian.Uint64(b[104:])}, true
}

// PortInfo is what programs learn about a port: struct umad_port.
type PortInfo struct {
	Number, LID, LMC, SMLID, SMSL, State, Physical uint32
	Rate                                           uint32 // Gb/s
	Capabilities                                   uint32
	Prefix, GUID                                   uint64
	LinkLayer                                      string
	PKeys                                          []ib.PKey
	Info                                           [64]byte // the PortInfo attribute
	Node                                           [64]byte // the NodeInfo attribute
}

// portLen is the length of a PortInfo without its P_Keys.
const portLen = 32 + 4 + 16 + 20 + 4 + 128

// Append appends it to an answer.
func (p *PortInfo) Append(b []byte) []byte {
	var m [portLen]byte
	for i, v := range [...]uint32{p.Number, p.LID, p.LMC, p.SMLID, p.SMSL, p.State, p.Physical, p.Rate} {
		binary.LittleEndian.PutUint32(m[4*i:], v)
	}
	binary.BigEndian.PutUint32(m[32:], p.Capabilities)
	binary.BigEndian.PutUint64(m[36:], p.Prefix)
	binary.BigEndian.PutUint64(m[44:], p.GUID)
	put(m[52:72], p.LinkLayer)
	binary.LittleEndian.PutUint32(m[72:], uint32(len(p.PKeys)))
	copy(m[76:], p.Info[:])
	copy(m[140:], p.Node[:])
	b = append(b, m[:]...)
	for _, k := range p.PKeys {
		b = binary.LittleEndian.AppendUint16(b, uint16(k))
	}
	return b
}

// ParsePort parses it; false: it is too short.
func ParsePort(b []byte) (p PortInfo, ok bool) {
	if len(b) < portLen {
		return p, false
	}
	for i, v := range [...]*uint32{&p.Number, &p.LID, &p.LMC, &p.SMLID, &p.SMSL, &p.State, &p.Physical, &p.Rate} {
		*v = binary.LittleEndian.Uint32(b[4*i:])
	}
	p.Capabilities = binary.BigEndian.Uint32(b[32:])
	p.Prefix, p.GUID = binary.BigEndian.Uint64(b[36:]), binary.BigEndian.Uint64(b[44:])
	p.LinkLayer = text(b[52:72])
	n := int(binary.LittleEndian.Uint32(b[72:]))
	p.Info, p.Node = [64]byte(b[76:140]), [64]byte(b[140:204])
	if b = b[portLen:]; n > len(b)/2 {
		return p, false
	}
	for i := range n {
		p.PKeys = append(p.PKeys, ib.PKey(binary.LittleEndian.Uint16(b[2*i:])))
	}
	return p, true
}

// Flags of a registration.
const (
	flagUserRMPP = 1
	flagRaw      = 2
)

// AppendRegistration appends the message that registers an agent.
func AppendRegistration(b []byte, r *agent.Registration) []byte {
	var m [registerLen]byte
	binary.LittleEndian.PutUint32(m[0:], Register)
	binary.LittleEndian.PutUint32(m[4:], version)
	m[8], m[9], m[10], m[11] = r.Class, r.Version, r.RMPP, uint8(r.QPN)
	if r.UserRMPP {
		m[12] |= flagUserRMPP
	}
	if r.Raw {
		m[12] |= flagRaw
	}
	binary.LittleEndian.PutUint32(m[16:], r.OUI)
	binary.LittleEndian.PutUint64(m[24:], r.Methods[0])
	binary.LittleEndian.PutUint64(m[32:], r.Methods[1])
	return append(b, m[:]...)
}

// ParseRegistration parses it; false: it is invalid.
func ParseRegistration(b []byte) (agent.Registration, bool) {
	if len(b) != registerLen || binary.LittleEndian.Uint32(b[4:]) != version {
		return agent.Registration{}, false
	}
	return agent.Registration{Class: b[8], Version: b[9], RMPP: b[10], QPN: ib.QPN(b[11]), UserRMPP: b[12]&flagUserRMPP != 0,
		Raw: b[12]&flagRaw != 0, OUI: binary.LittleEndian.Uint32(b[16:]),
		Methods: [2]uint64{binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])}}, true
}
