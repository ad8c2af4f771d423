// Package umad sends management datagrams and receives them: what the kernel's ib_umad is to C programs. A Port
// is one port of an adapter of a fabric. It gives every request a transaction ID, matches answers to requests,
// asks again when none comes in time, and hands what other nodes ask to the server of its class.
//
// How MADs travel is a Transport; Open chooses one by the environment.
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

// Address is where a MAD goes to, or came from.
type Address struct {
	LID ib.LID // 0xffff: by a directed route, from the first hop
	QP  ib.QPN
	// SL is the service level of the way, PKeyIndex where the P_Key stands in the table of the own port. Not all transports carry
	// them: the protocol of ibsim has no room.
	SL        uint8
	PKeyIndex uint16
}

// Datagram is one MAD with its addresses. A MAD that nobody could be given comes back to its sender, Failed.
type Datagram struct {
	Remote  Address
	LocalQP ib.QPN
	Failed  bool
	MAD     [mad.Len]byte
	// Length is how many bytes of the MAD a transport says are used; 0: all.
	Length int
	// Records are the data of an answer that came in segments, put together; the MAD is the first segment.
	Records []byte
}

// Transport carries MADs between a port and its fabric. Send and Receive may be called from one goroutine each at a time.
type Transport interface {
	// Send hands a MAD to the fabric. It may wait while the fabric takes none. Of what is sent while whoever receives is at work
	// with MADs that came together, some may wait until the next call of Receive.
	Send(*Datagram) error
	// Receive waits for the next MAD. After Close it returns an error. It fills in all of the datagram.
	Receive(*Datagram) error
	Close() error
}

// Device is what a machine knows of its own adapter and port without asking the fabric.
type Device struct {
	Name     string // of the adapter
	Type     string // its board
	Firmware string
	Hardware string
	Ports    int // that the machine sees
	PortNum  int // of the port that is open
	Node     mad.NodeInfo
	Port     mad.PortInfo
	PKeys    []ib.PKey
	// LinkLayer is what kind of link the port has; empty where the machine does not say.
	LinkLayer string
}

// Timing says how long to wait for an answer, and how often to ask.
type Timing struct {
	Timeout time.Duration // for each time
	Tries   int           // how often to send; at least 1
}

// DefaultTiming is that of infiniband-diags.
var DefaultTiming = Timing{Timeout: time.Second, Tries: 3}

// ErrTimeout is a request that nobody answered in time.
var ErrTimeout = errors.New("no answer")

// ErrClosed is what an operation on a closed port returns.
var ErrClosed = errors.New("umad: the port is closed")

// StatusError is an answer with a status other than success.
type StatusError struct {
	Status uint16 // IBA 13.4.7; without the direction bit
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("MAD status %#04x", e.Status) }
