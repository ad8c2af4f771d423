package device

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/links"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/function/raw"
	"github.com/softvpi/softvpi/internal/function/rdma"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

const (
	// LeastMTU is the minimum IP packet size that a link must carry: a payload of 256 bytes.
	LeastMTU = 256 + maxOverhead
	// vendorID is that of the adapters whose driver this emulates. No device of theirs has the ids of the
	// following, so that programs do not treat them like one.
	vendorID = 0x02c9
	deviceID = 0x5f01
	// DeviceMLX4 is the AdapterConfig.DeviceID of the ConnectX-3 class.
	DeviceMLX4 = 0x5f02
)

// adapter is an adapter with its single port.
type adapter struct {
	host  *Host
	index uint32
	trace *trace.Recorder
	// watched are the queue pairs whose packets captures have notes of.
	watched []watched
	cfg     AdapterConfig
	name    string
	limits  Limits
	// guid is the port's, ownGUID the one that it has unless firmware names another.
	guid, ownGUID uint64
	// mac is the one in use; permanent is the adapter's own.
	mac, permanent [6]byte

	function *rdma.Function
	engine   *transport.Engine // function's
	cm       *cm.Engine        // function's
	memory   *memory.Table
	port     *portLoop
	station  *port.Station // function's place at the port
	links    *links.Set    // what the port is plugged into
	nic      *nic          // its Ethernet function; nil: it has none
	raw      rawPackets    // of its raw packet QPs
	gids     gid.Table
	mtu      uint32       // ActiveMTU
	ib       *ibport.Port // nil: an Ethernet port
	ipoib    func() (command.Interface, bool)
	hardware func() []command.LinkAddress // of its IPoIB interfaces
	// ipMTU is the largest IP packet: linkMTU, that of the link, or less.
	ipMTU, linkMTU uint32

	enabled bool
	leaves  chan struct{} // closed when it is disabled or closed: whoever waits for its port gives up
	present bool          // the port's address exists on its interface
	wire    link.State    // of the port, as it was followed last
	held    bool          // an interface has had the port's address
	gone    bool          // no interface has it any more
	mute    bool          // a fault: events of its CQs are not raised
	removed bool          // a virtual function that is gone
	ceded   bridge.VLANs  // those that its VLAN interfaces are in
	guard   raw.Guard     // of what its raw packet queue pairs send, if it is a virtual function

	at          eswitch.Port // at the switch that is embedded in its port; Wire: there is none
	number      int          // of that port, of its kind
	promiscuous bool         // it wants to see all there

	conflictDue clock.Time // when subscribers may be told again that somebody has one of its addresses
	path        PathPolicy

	cqs         []*cq // by their number
	freeCQs     []uint32
	byNumber    map[uint32]*qp  // for events and CM, not packets
	ids         map[cm.ID]*cmid // by their numbers in the CM, those too that the CM has ended
	groups      map[netip.Addr]int
	nextPD      memory.PD
	nextSRQ     uint32
	nextDomain  uint32
	domains     map[fileOfUser]*xrcDomain // those that programs share
	objects     ObjectCounts
	doorbells   uint64     // of programs, for its queues
	dmTaken     uint64     // bytes of device memory that programs have
	regionPages uint64     // of 4 KB, that memory regions touch
	joining     []*joining // pairs that wait for a quiet moment to move to the local path
	joinDue     clock.Time

	congestion congestion.Settings // with LineRate 0: the link's
	flow       FlowControl         // by keys

	carried   carried
	otherMode uint64     // RoCE packets of another mode, when subscribers were told last
	modeDue   clock.Time // when they may be told again

	cqOverflows, linkDowns uint64
	restarts               uint64
	before                 *Counters // at the last restart

	bursts
	refused [8]link.Violation
}

func errRemoved() *command.Error {
	return command.Errorf(command.Removed, "the adapter was disabled")
}

// usable returns an error unless the adapter accepts new requests.
func (a *adapter) usable() error {
	if !a.enabled {
		return command.Errorf(command.Removed, "adapter %q is disabled", a.name)
	}
	return nil
}

// close closes the links, and what its Ethernet function's host has of it.
func (a *adapter) close() error {
	if a.enabled {
		a.retire()
	}
	return errors.Join(a.nic.close(), a.links.Close())
}

func (a *adapter) addCQ(q *cq) {
	if n := len(a.freeCQs); n > 0 {
		q.ref, a.freeCQs = a.freeCQs[n-1], a.freeCQs[:n-1]
		a.cqs[q.ref] = q
	} else {
		q.ref = uint32(len(a.cqs))
		a.cqs = append(a.cqs, q)
	}
	a.objects.CQ++
}

func (a *adapter) removeCQ(q *cq) {
	a.cqs[q.ref] = nil
	a.freeCQs = append(a.freeCQs, q.ref)
	a.objects.CQ--
}

// disown copies payloads in mem, which is about to go away, for packets that still wait for the link.
func (a *adapter) disown(mem []byte) {
	if len(mem) == 0 {
		return
	}
	o := a.port
	for i := o.sent; i < o.queued; i++ {
		if p := o.out[i].Payload; overlaps(p, mem) {
			o.out[i].Payload = slices.Clone(p)
		}
	}
}

// overlaps reports whether p starts in mem.
func overlaps(p, mem []byte) bool {
	if len(p) == 0 {
		return false
	}
	at, from := uintptr(unsafe.Pointer(&p[0])), uintptr(unsafe.Pointer(&mem[0]))
	return at >= from && at < from+uintptr(len(mem))
}

// broadcast queues an asynchronous event of the adapter for every program.
func (a *adapter) broadcast(typ command.EventType) {
	for _, c := range a.host.clients {
		if c.sees(a) {
			c.event(command.Event{Type: typ, Adapter: a.index})
		}
	}
}

// readdress updates the GID table to the addresses of the interface.
func (a *adapter) readdress(addrs []netip.Addr, present bool) {
	if !a.enabled || a.ib != nil {
		return
	}
	was := a.linked()
	changed := a.present != present
	a.present = present
	a.moved(was)
	want := []netip.Addr{}
	if present {
		want = append(want, a.cfg.Addr)
	}
	for _, x := range append(slices.Clone(a.cfg.Addrs), addrs...) {
		if !slices.Contains(want, x) {
			want = append(want, x)
		}
	}
	if a.setGIDs(a.serve(want)) {
		a.broadcast(command.EventGIDChange)
		a.report(notify.GIDChange)
	}
	if changed {
		a.reroute()
	}
}

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// rand8 returns a generator of random key tags.
func rand8(seed uint64) func() uint8 {
	return func() uint8 { // xorshift64*
		seed ^= seed >> 12
		seed ^= seed << 25
		seed ^= seed >> 27
		return uint8(seed * 0x2545f4914f6cdd1d >> 56)
	}
}
