package nd

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/verbs"
)

// Adapter is an open adapter. All objects of one Adapter can be used together: they share a protection
// domain.
type Adapter struct {
	provider *Provider
	dev      *verbs.Device
	pd       *verbs.PD
	pairs    pairTable
}

func newAdapter(p *Provider, d *verbs.Device) (*Adapter, error) {
	pd, err := d.AllocPD()
	if err != nil {
		return nil, fail("Provider.OpenAdapter", err)
	}
	return &Adapter{provider: p, dev: d, pd: pd}, nil
}

// AdapterInfo describes an adapter, its limits (ND2_ADAPTER_INFO) and how the program reaches it.
type AdapterInfo struct {
	InfoVersion                uint32 // 0x20000
	VendorID                   uint16
	DeviceID                   uint16
	AdapterID                  uint64
	MaxRegistrationSize        uint64
	MaxWindowSize              uint64
	MaxInitiatorSGE            int
	MaxReceiveSGE              int
	MaxReadSGE                 int
	MaxTransferLength          uint32
	MaxInlineDataSize          int
	MaxInboundReadLimit        int
	MaxOutboundReadLimit       int
	MaxReceiveQueueDepth       int
	MaxInitiatorQueueDepth     int
	MaxSharedReceiveQueueDepth int
	MaxCompletionQueueDepth    int
	InlineRequestThreshold     int // below this many bytes inline data is faster
	LargeRequestThreshold      int // from this many bytes on a request counts as large
	MaxCallerData              int
	MaxCalleeData              int
	Flags                      AdapterFlags

	Name string     // "Ethernet 1"
	Addr netip.Addr // the first address
	Up   bool
	// Mode tells whether the adapter is embedded in this process or belongs to a driver process to which
	// this one is attached.
	Mode verbs.Mode
}

// version2 is ND_VERSION_2.
const version2 = 0x20000

// Query returns the adapter's current description.
func (a *Adapter) Query() (AdapterInfo, error) {
	v, err := a.dev.Query()
	if err != nil {
		return AdapterInfo{}, fail("Adapter.Query", err)
	}
	return AdapterInfo{
		InfoVersion: version2, VendorID: uint16(v.VendorID), DeviceID: uint16(v.DeviceID), AdapterID: v.GUID,
		MaxRegistrationSize: v.MaxRegion, MaxWindowSize: v.MaxRegion,
		MaxInitiatorSGE: v.MaxSGE, MaxReceiveSGE: v.MaxSGE, MaxReadSGE: v.MaxSGE,
		MaxTransferLength: uint32(min(v.MaxMessage, 1<<32-1)), MaxInlineDataSize: v.MaxInline,
		MaxInboundReadLimit: v.MaxReadResponder, MaxOutboundReadLimit: v.MaxReadInitiator,
		MaxReceiveQueueDepth: v.MaxQPDepth, MaxInitiatorQueueDepth: v.MaxQPDepth,
		MaxSharedReceiveQueueDepth: v.MaxSRQDepth, MaxCompletionQueueDepth: v.MaxCQDepth,
		InlineRequestThreshold: min(inlineThreshold, v.MaxInline), LargeRequestThreshold: largeThreshold,
		MaxCallerData: MaxCallerData, MaxCalleeData: MaxCalleeData,
		Flags: AdapterFlagInOrderDMA | AdapterFlagCQInterruptModeration | AdapterFlagCQResize | AdapterFlagLoopbackConnections,
		Name:  v.Name, Addr: v.Addr, Up: v.Up, Mode: a.provider.host.Mode(),
	}, nil
}

const (
	inlineThreshold = 128
	largeThreshold  = 32 << 10
)

// QueryAddressList returns the local addresses of the adapter.
func (a *Adapter) QueryAddressList() ([]netip.Addr, error) {
	list, err := deviceAddrs(a.dev)
	return list, fail("Adapter.QueryAddressList", err)
}

// Device returns the underlying verbs device, for what NetworkDirect does not offer.
func (a *Adapter) Device() *verbs.Device { return a.dev }

// PD returns the protection domain that the adapter's objects share.
func (a *Adapter) PD() *verbs.PD { return a.pd }

// SetCQInterruptModeration limits the events of a completion queue
// (Nd2AdapterControlSetCqInterruptModeration, WinOF manual 4.9.1.1.2): a Notify completes after count
// completions, or interval after the first one that has not been notified yet. More than 65,535 completions or
// microseconds are rounded down to that. Zero values switch moderation off.
func (a *Adapter) SetCQInterruptModeration(cq *CompletionQueue, count int, interval time.Duration) error {
	const op = "Adapter.SetCQInterruptModeration"
	if cq == nil || cq.adapter != a {
		return refuse(StatusInvalidParameter, op, "cq is not a completion queue of this adapter")
	}
	return fail(op, cq.cq.Moderate(count, interval))
}

// Close releases the adapter. ND_DEVICE_BUSY while it still has open objects.
func (a *Adapter) Close() error {
	return fail("Adapter.Close", a.pd.Close())
}
