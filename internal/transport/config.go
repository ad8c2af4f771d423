package transport

import (
	"time"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// MaxSGE is the most scatter/gather entries of a work request.
	MaxSGE = ring.MaxSGE
	// MaxReadAtomic is the most RDMA reads and atomics that a QP can have
	// outstanding, as initiator and as responder.
	MaxReadAtomic = 16
	// MaxMessage is the longest message in bytes (IBA 9.7.7: 2^31).
	MaxMessage = 1 << 31
	// MinMTU and MaxMTU bound the path MTU in bytes of payload.
	MinMTU, MaxMTU = 256, 4096
	// GRHArea is the space in front of each datagram that a UD receive takes
	// (IBA 11.4.1.2): a GRH, or an IPv4 header in its last 20 bytes.
	GRHArea = 40
	// DefaultMulticast is the default of Config.MaxMulticast.
	DefaultMulticast = 65536
)

// Config is what an engine is made with. The zero value of every field but
// Memory is a documented default.
type Config struct {
	// Memory is the adapter's table of regions and windows. Required.
	Memory *memory.Table
	// PKeys is the partition table of the port; nil means the default partition
	// 0xffff alone. SetPKeys changes it.
	PKeys []ib.PKey
	// Window bounds what is in flight to one destination address.
	Window congestion.Config
	// MTU is the active MTU of the port, the longest datagram of UD queue pairs;
	// 0 means 4096.
	MTU int
	// MaxQPs is the most QPs that the engine holds; 0 means 512K (524,288).
	MaxQPs int
	// MaxBurst is the most packets that a QP emits before the next one has its
	// turn; 0 means 64, a message of 64 KB with path MTU 1024.
	MaxBurst int
	// MaxBurstBytes bounds the bytes of payload of such a turn; 0 means 65,536. The
	// first packet of a message is longer than the next: behind it one of 64 KB fits into a UDP_SEGMENT burst.
	MaxBurstBytes int
	// Loop is the number of the loop that owns the engine, LoopBits how many low
	// bits of a QP number hold it.
	Loop     uint32
	LoopBits uint8
	// FirstQPN is where the numbering of QPs starts; 0 means 0x11. A random
	// value keeps the numbers of one run from meaning anything in the next.
	FirstQPN uint32
	// TimeWait is how long the number of a connected QP rests after Destroy
	// before it is given out again; 0 means 10 s.
	TimeWait time.Duration
	// MaxMulticast is the most attachments of QPs to multicast groups; 0 means DefaultMulticast.
	MaxMulticast int
	// MaxDatagrams bounds the queues of MADs of QP1 each way; 0 means 4,096.
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
