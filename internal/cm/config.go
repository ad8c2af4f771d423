package cm

import (
	"time"

	"github.com/softvpi/softvpi/wire/ib"
)

// Defaults of [Config].
const (
	// defaultMaxRetries is how often a CM message is retransmitted (MaxCMRetries).
	defaultMaxRetries = 15
	// defaultResponseTimeout is 4.096 us * 2^17, 537 ms: how long each side has to answer a CM message.
	// With defaultMaxRetries, an unanswered attempt has just used up its retries when
	// DefaultConnectTimeout ends it.
	defaultResponseTimeout = 17
	// defaultPacketLifetime is 4.096 us * 2^14, 67 ms, one way. The local ACK timeout in REQ is one code
	// higher. (Linux uses 18 for RoCE, with which losing the last packet costs 2.1 s.)
	defaultPacketLifetime = 14
	// defaultAckDelay is 4.096 us * 2^13, 34 ms: how long this adapter may take
	// to acknowledge a packet, carried in REP.
	defaultAckDelay = 13
	// DefaultConnectTimeout limits a whole attempt, so that a program learns within ten seconds that
	// nobody answers.
	DefaultConnectTimeout = 9500 * time.Millisecond
	// releaseTimeout limits the end of a connection that the peer does not confirm. The response timeouts
	// that the sides announce would make it wait for 103 s (MaxCMRetries and Linux's response timeout),
	// although the connection is over for this side whatever the peer says (IBA 12.9: from DREQ Sent to
	// TimeWait).
	releaseTimeout = DefaultConnectTimeout
	// defaultBacklog is the backlog of a listener that does not specify one.
	defaultBacklog = 128
	// defaultMaxHalfOpen limits the peers' requests that are not established yet, over all listeners.
	defaultMaxHalfOpen = 4096
	// defaultMaxIDs limits all ids, whoever created them.
	defaultMaxIDs = 1 << 20
	// defaultRequestLifetime is how long a request may wait for Accept, Reject
	// or Establish.
	defaultRequestLifetime = 2 * time.Minute
)

// Config configures an [Engine]. The zero value of a field means its default, except GUID and Rand, which
// are required.
type Config struct {
	// GUID is the adapter's EUI-64, the CA GUID of REQ and REP. It must be unique: peers use it to tell
	// connections of different adapters apart.
	GUID uint64
	// Rand returns random numbers: starting PSNs, ids and ephemeral ports.
	Rand func() uint64

	// MTU is the largest path MTU of the port; default 1024. See [Engine.SetMTU].
	MTU ib.MTU
	// PKeys is the partition table of the port; default: only 0xffff. New connections use the first valid
	// one, those over a [Path] the path's. See [Engine.SetPKeys].
	PKeys []ib.PKey
	// MaxRetries is MaxCMRetries, 1 to 15; default 15. A message is sent once and then retransmitted at
	// most that often.
	MaxRetries uint8
	// ResponseTimeout is a CM timeout code, 1 to 31; default 17.
	ResponseTimeout uint8
	// PacketLifetime is a timeout code, 1 to 30; default 14.
	PacketLifetime uint8
	// AckDelay is a timeout code, 1 to 31; default 13.
	AckDelay uint8
	// DisableFlowControl switches end-to-end credits off, like the registry key RoceRcE2EFlowControlEnable
	// = 0 (WinOF manual, RoCE options). Credits are used if both sides set their bit, but never with an
	// SRQ.
	DisableFlowControl bool

	// MaxHalfOpen, MaxIDs and RequestLifetime limit what peers and programs can make the engine store;
	// defaults 4096, 1048576 and 2 minutes.
	MaxHalfOpen     int
	MaxIDs          int
	RequestLifetime time.Duration
}

// complete fills in the defaults and checks the rest.
func (c *Config) complete() error {
	if c.Rand == nil {
		return fieldError("Rand", nil, "a source of random numbers")
	}
	if c.GUID == 0 {
		return fieldError("GUID", 0, "the adapter's EUI-64, not zero")
	}
	setDefault(&c.MTU, ib.MTU1024)
	if c.PKeys == nil {
		c.PKeys = []ib.PKey{ib.PKeyDefault}
	}
	setDefault(&c.MaxRetries, defaultMaxRetries)
	setDefault(&c.ResponseTimeout, defaultResponseTimeout)
	setDefault(&c.PacketLifetime, defaultPacketLifetime)
	setDefault(&c.AckDelay, defaultAckDelay)
	setDefault(&c.MaxHalfOpen, defaultMaxHalfOpen)
	setDefault(&c.MaxIDs, defaultMaxIDs)
	setDefault(&c.RequestLifetime, defaultRequestLifetime)
	switch {
	case !c.MTU.Valid():
		return fieldError("MTU", uint8(c.MTU), "a code from 1 (256) to 5 (4096)")
	case c.MaxRetries > 15:
		return fieldError("MaxRetries", c.MaxRetries, "1 to 15")
	case c.ResponseTimeout > 31:
		return fieldError("ResponseTimeout", c.ResponseTimeout, "a code from 1 to 31")
	case c.PacketLifetime > 30:
		return fieldError("PacketLifetime", c.PacketLifetime, "a code from 1 to 30")
	case c.AckDelay > 31:
		return fieldError("AckDelay", c.AckDelay, "a code from 1 to 31")
	case c.MaxHalfOpen < 0:
		return fieldError("MaxHalfOpen", c.MaxHalfOpen, "positive")
	case c.MaxIDs < 0:
		return fieldError("MaxIDs", c.MaxIDs, "positive")
	case c.RequestLifetime < 0:
		return fieldError("RequestLifetime", c.RequestLifetime, "positive")
	}
	return nil
}

// pkey returns the partition of connections that do not specify one.
func (c *Config) pkey() ib.PKey {
	for _, k := range c.PKeys {
		if k.Valid() {
			return k
		}
	}
	return ib.PKeyDefault
}

// member returns the port's key for the partition of a peer's key; ok is false if the port is not a
// member.
func (c *Config) member(of ib.PKey) (k ib.PKey, ok bool) {
	for _, k := range c.PKeys {
		if ib.PKeyMatch(of, k) {
			return k, true
		}
	}
	return 0, false
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
