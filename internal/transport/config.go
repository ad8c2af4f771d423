package transport

import (
	"time"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// MaxSGE is the maximum number of scatter/gather entries of a work request.
	MaxSGE = ring.MaxSGE
	// MaxReadAtomic is the maximum number of RDMA reads and atomics that a QP can have outstanding, as
	// initiator and as responder: as many as Linux's Soft-RoCE has.
	MaxReadAtomic = 128
	// MaxMessage is the maximum length of a message in bytes (IBA 9.7.7: 2^31).
	MaxMessage = 1 << 31
	// MinMTU and MaxMTU bound the path MTU in bytes of payload.
	MinMTU, MaxMTU = 256, 4096
	// GRHArea is the space before each datagram in a UD receive (IBA 11.4.1.2): it holds a GRH, or an IPv4
	// header in its last 20 bytes.
	GRHArea = 40
	// DefaultMulticast is the default of Config.MaxMulticast.
	DefaultMulticast = 65536
)

// Config configures an engine. The zero value of every field but Memory is a documented default.
type Config struct {
	// Memory is the adapter's table of regions and windows. Required.
	Memory *memory.Table
	// PKeys is the partition table of the port; nil means only the default partition 0xffff. SetPKeys
	// changes it.
	PKeys []ib.PKey
	// Management is the partition of QP1 beside those of the table, for functions whose messages go through another's QP1; 0: none.
	Management ib.PKey
	// Window limits what is in flight to one destination address.
	Window congestion.Config
	// MTU is the active MTU of the port, the maximum length of a datagram of UD queue pairs; 0 means 4096.
	MTU int
	// MaxQPs is the maximum number of QPs; 0 means 512K (524,288).
	MaxQPs int
	// MaxBurst is the maximum number of packets that a QP emits before the next one has its turn; 0 means
	// 64, a message of 64 KB with path MTU 1024.
	MaxBurst int
	// MaxBurstBytes limits the bytes of payload of such a turn; 0 means 65,536. The first packet of a
	// message is longer than the others, so a message of 64 KB fits into a UDP_SEGMENT burst after it.
	MaxBurstBytes int
	// Loop is the number of the loop that owns the engine; the low LoopBits bits of a QP number hold it.
	Loop     uint32
	LoopBits uint8
	// Random returns the numbers that QP numbers are made of, which whoever forges a packet must know. With
	// nil, for tests, they are consecutive and begin with FirstQPN; 0 means 0x11.
	Random   func() uint64
	FirstQPN uint32
	// Taken reports whether another function at the port has a QP number, for ports that tell functions by these; nil: there is none.
	Taken func(qpn uint32) bool
	// AnySourcePort accepts packets of a connected QP from any UDP port of its peer's address. Otherwise
	// they must come from the port that its first packet came from.
	AnySourcePort bool
	// TimeWait is how long the number of a connected QP is not reused after Destroy; 0 means 10 s.
	TimeWait time.Duration
	// MaxMulticast is the maximum number of attachments of QPs to multicast groups; 0 means
	// DefaultMulticast.
	MaxMulticast int
	// MaxDatagrams limits QP1's queues of MADs in each direction; 0 means 4,096.
	MaxDatagrams int
}

func (c *Config) complete() error {
	if c.Memory == nil {
		return fieldError("Memory", "nil", "the table of the adapter")
	}
	if c.PKeys == nil {
		c.PKeys = []ib.PKey{ib.PKeyDefault}
	}
	setDefault(&c.MTU, MaxMTU)
	setDefault(&c.MaxQPs, 512<<10)
	setDefault(&c.MaxBurst, 64)
	setDefault(&c.MaxBurstBytes, 65536)
	setDefault(&c.MaxMulticast, DefaultMulticast)
	setDefault(&c.MaxDatagrams, 4096)
	if c.FirstQPN == 0 {
		c.FirstQPN = 0x11
	}
	if c.TimeWait == 0 {
		c.TimeWait = 10 * time.Second
	}
	if !validMTU(uint32(c.MTU)) {
		return fieldError("MTU", c.MTU, "256, 512, 1024, 2048 or 4096")
	}
	if c.LoopBits > 8 {
		return fieldError("LoopBits", c.LoopBits, "0 to 8")
	}
	if c.Loop >= 1<<c.LoopBits {
		return fieldError("Loop", c.Loop, "less than 2^LoopBits")
	}
	return c.Window.Complete()
}

func setDefault(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}
