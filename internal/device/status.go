package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// Snapshot is the state of a Host at one moment, for status output.
type Snapshot struct {
	Adapters []AdapterStatus
	Clients  []ClientStatus
}

// AdapterStatus is an adapter with its port.
type AdapterStatus struct {
	Info       command.AdapterInfo
	Name       string
	NodeGUID   uint64 // of the device that the adapter is a port of
	Addrs      []netip.Addr
	MAC        [6]byte
	Enabled    bool
	Up         bool
	NoRDMA     bool       // for programs
	Wire       link.State // of the port, with what its configuration says
	Path       PathPolicy
	Impairment string // empty: none
	// SourcePorts describes the rule by which UDP source ports are chosen.
	SourcePorts string
	// Frames tells whether short packets are sent as Ethernet frames, and if not, why.
	Frames      string
	GIDs        []command.GID
	QPs         []QPStatus
	Link        link.Stats
	Retransmits uint64
	Counters    []command.Counter
	Objects     ObjectCounts
	LLDP        *LLDPStatus     // of its port's agent; nil: it has none of its own
	Priorities  *PriorityStatus // of its port; nil: it has none
	Flow        FlowStatus
}

// ObjectCounts is how many objects of each kind exist.
type ObjectCounts struct{ PD, MR, MW, CQ, SRQ, QP, AH, CM, XRCD int }

// regionPage is the size of the pages that an adapter translates (WinOF 5.50: "CPU MEM-pages (4K)").
const regionPage = 4096

// pagesOf returns how many pages a memory region touches: none that an adapter would have to keep if it is on demand.
func pagesOf(r *memory.Region) uint64 {
	if r.Length == 0 || r.Access&memory.OnDemand != 0 {
		return 0
	}
	return (r.Base+r.Length-1)/regionPage - r.Base/regionPage + 1
}

// QPStatus is one QP.
type QPStatus struct {
	Number     uint32
	Type       command.QPType
	State      command.QPState
	Client     string
	PID        int
	Peer       netip.Addr // on InfiniBand its GID, if known
	PeerLID    uint16     // on InfiniBand
	RemoteQPN  uint32
	Path       uint32 // 1 wire, 2 local, 3 direct
	MTU        uint32
	SrcPort    uint16 // UDP source port of the connection
	SendPosted uint32
	RecvPosted uint32
	Returned   string // why the program last left a request of the direct path to the driver
	// Rate is how congestion limits its rate; Limited is false if it does not.
	Rate    congestion.Rate
	Limited bool
	// Limit is how its program limits its rate.
	Limit command.LimitQP
}

// ClientStatus is one program.
type ClientStatus struct {
	Name       string
	PID, UID   int
	Attached   bool
	MemoryPath command.MemoryPath
	Function   string // its virtual function; empty: it has none
	ArenaBytes uint64
	Objects    ObjectCounts
	// Memory and Descriptors are what the program makes this process hold.
	Memory, Descriptors budget.Usage
}
