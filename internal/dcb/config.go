package dcb

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// Mode is which TLVs pass in one direction, in the order of the manual's LLDP_NB_TX_MODE and LLDP_NB_RX_MODE (WinOF-2 Ethernet b,
// DCBX).
type Mode uint8

// Modes.
const (
	Off Mode = iota
	Mandatory
	All
)

// String returns a mode's name.
func (m Mode) String() string { return [...]string{"off", "mandatory", "all"}[m] }

// Protocol is which DCBX is spoken.
type Protocol uint8

// Protocols.
const (
	// Auto speaks IEEE's until the peer is heard to speak only CEE's.
	Auto Protocol = iota
	IEEE
	CEE
)

// String returns a protocol's name.
func (p Protocol) String() string { return [...]string{"auto", "ieee", "cee"}[p] }

// ParseProtocol returns the protocol of a name.
func ParseProtocol(name string) (Protocol, error) {
	for p := Auto; p <= CEE; p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("DCBX protocol %q: want auto, ieee or cee", name)
}

// Config describes an agent.
type Config struct {
	// MAC is the port's: the source of its frames, and what decides between two that are willing.
	MAC eth.MAC
	// Local is what the port says of itself, without DCBX; the TTL is ignored.
	Local             lldp.PDU
	Transmit, Receive Mode
	// DCBX is spoken only if both directions pass all TLVs.
	DCBX bool
	Local8021Q
}

// Local8021Q is the port's part in DCBX.
type Local8021Q struct {
	Protocol Protocol
	// Willing ports do as their peer says.
	Willing bool
	// Settings are those by which the port works on its own. Chosen* say which of them somebody has chosen: what nobody has is not
	// recommended to the peer, and its origin is the default.
	Settings                                 qos.Settings
	ChosenETS, ChosenPFC, ChosenApplications bool
}

// speaks reports whether DCBX is spoken.
func (c *Config) speaks() bool { return c.DCBX && c.Transmit == All && c.Receive == All }

// Own returns the port's own settings with their origins.
func (c *Local8021Q) Own() qos.Operative {
	from := func(chosen bool) qos.Origin {
		if chosen {
			return qos.FromLocal
		}
		return qos.FromDefault
	}
	return qos.Operative{Settings: c.Settings, ETSFrom: from(c.ChosenETS), PFCFrom: from(c.ChosenPFC),
		ApplicationsFrom: from(c.ChosenApplications)}
}

// Times of the transmit state machines (IEEE 802.1AB, 9.2.5).
const (
	second = 1e9
	// interval is from one data unit to the next (msgTxInterval), hold how many may be lost (msgTxHold).
	interval = 30
	hold     = 4
	// ttl is for how long a neighbour may believe what it was told (txTTL), in seconds.
	ttl = interval*hold + 1
	// fastInterval and fastCount are those for a new neighbour (msgFastTx, txFastInit).
	fastInterval = 1
	fastCount    = 4
	// mostCredit is how many data units may follow each other at once (txCreditMax).
	mostCredit = 5
	// reinit is for how long a port that has said that it ends is silent (reinitDelay).
	reinit = 2
	// doubtful is for how long a peer that has spoken IEEE's DCBX has to speak only CEE's until it is followed. (None of the standard.)
	doubtful = 5
)

// mostNeighbours is how many are known at a time.
const mostNeighbours = 8
