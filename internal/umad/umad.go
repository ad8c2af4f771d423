// Package umad sends and receives management datagrams, as the kernel's ib_umad does for C programs. A
// Port is one port of an adapter in a fabric. It gives every request a transaction ID, matches answers to
// requests, retransmits when none arrives in time, and passes requests of other nodes to the server of
// their class.
//
// A Transport carries the MADs; Open chooses one by the environment.
package umad

import (
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Queue pairs of management datagrams (IBA 9.2.4).
const (
	SMIQP ib.QPN = 0 // subnet management
	GSIQP ib.QPN = 1 // everything else
)

// Address is the destination or the sender of a MAD.
type Address struct {
	LID ib.LID // 0xffff: by a directed route, from the first hop
	QP  ib.QPN
	// SL is the service level of the path, PKeyIndex the index of the P_Key in the own port's table. Not
	// all transports carry them: ibsim's protocol has no room for them.
	SL        uint8
	PKeyIndex uint16
}

// Datagram is one MAD with its addresses. A MAD that could not be delivered returns to its sender with
// Failed set.
type Datagram struct {
	Remote  Address
	LocalQP ib.QPN
	Failed  bool
	MAD     [mad.Len]byte
	// Length is how many bytes of the MAD are in use according to the transport; 0: all.
	Length int
	// Records holds the reassembled data of an answer that arrived in segments; MAD is the first segment.
	Records []byte
}

// Transport carries MADs between a port and its fabric. Send and Receive may each be called by one
// goroutine at a time.
type Transport interface {
	// Send passes a MAD to the fabric. It may block while the fabric accepts none. While the receiver
	// handles MADs that arrived together, what is sent may be held back until the next call of Receive.
	Send(*Datagram) error
	// Receive waits for the next MAD. After Close it returns an error. It sets all fields of the datagram.
	Receive(*Datagram) error
	Close() error
}

// Gatherer is a Transport for which it is cheaper to pass several MADs at once.
type Gatherer interface {
	Transport
	// Gather is Send, but the MAD may be held back until the next Flush.
	Gather(*Datagram) error
	// Flush passes what was held back to the fabric.
	Flush() error
}

// Device is what a machine knows about its own adapter and port without asking the fabric.
type Device struct {
	Name     string // of the adapter
	Type     string // its board
	Firmware string
	Hardware string
	Ports    int // number that the machine sees
	PortNum  int // number of the open port
	Node     mad.NodeInfo
	Port     mad.PortInfo
	PKeys    []ib.PKey
	// LinkLayer is the kind of link that the port has; empty if unknown.
	LinkLayer string
}

// Timing says how long to wait for an answer, and how often to try.
type Timing struct {
	Timeout time.Duration // per try
	Tries   int           // number of transmissions; at least 1
}

// DefaultTiming is that of infiniband-diags.
var DefaultTiming = Timing{Timeout: time.Second, Tries: 3}

// ErrTimeout says that nobody answered a request in time.
var ErrTimeout = errors.New("no answer")

// ErrClosed is returned by operations on a closed port.
var ErrClosed = errors.New("umad: the port is closed")

// StatusError is an answer with a status other than success.
type StatusError struct {
	Status uint16 // IBA 13.4.7; without the direction bit
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("MAD status %#04x", e.Status) }
