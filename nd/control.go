package nd

import (
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// AdapterStatus is the state of an adapter: 0 means up and running, otherwise it is a combination of the
// flags (WinOF manual 4.11.1.1.3).
type AdapterStatus uint32

// The flags of AdapterStatus.
const (
	AdapterIsDown       AdapterStatus = 1 << iota // ND_ADAPTER_FLAG_ADAPTER_IS_DOWN
	AdapterRDMADisabled                           // ND_ADAPTER_FLAG_ADAPTER_RDMA_DISABLED: no RoCE mode
)

// String returns the state in words.
func (s AdapterStatus) String() string {
	switch s {
	case 0:
		return "up"
	case AdapterIsDown:
		return "down"
	case AdapterRDMADisabled:
		return "RDMA disabled"
	case AdapterIsDown | AdapterRDMADisabled:
		return "down, RDMA disabled"
	}
	return "unknown status"
}

// ProviderControl notifies programs of changes of their adapters' state (IND2ProviderControl, WinOF manual
// 4.11.1).
type ProviderControl struct {
	provider *Provider
}

// Control returns the provider's control interface.
func (p *Provider) Control() *ProviderControl { return &ProviderControl{provider: p} }

// AdapterRegistration is a registered callback.
type AdapterRegistration struct {
	control *ProviderControl
	addr    netip.Addr
	index   uint32
	fn      func(netip.Addr, AdapterStatus)
	sub     *subscription

	mu   sync.Mutex
	last AdapterStatus
	done bool
}

// RegisterForAdapterStatus calls fn after every state change of the adapter that has the local address.
// Calls come one at a time on a goroutine of the provider and must return quickly. The registration lasts
// until DeregisterForAdapterStatus or Provider.Close.
func (c *ProviderControl) RegisterForAdapterStatus(addr netip.Addr, fn func(addr netip.Addr, status AdapterStatus)) (*AdapterRegistration,
	error) {
	const op = "ProviderControl.RegisterForAdapterStatus"
	if fn == nil {
		return nil, refuse(StatusInvalidParameter, op, "fn is nil")
	}
	d, err := c.provider.deviceAt(op, addr)
	if err != nil {
		return nil, err
	}
	r := &AdapterRegistration{control: c, addr: addr, index: d.Index(), fn: fn}
	r.last = statusOf(d)
	r.sub = &subscription{notify: func(e verbs.Event) { r.handle(d, e) }}
	if err := c.provider.subscribe(r.sub); err != nil {
		return nil, err
	}
	return r, nil
}

// DeregisterForAdapterStatus ends a registration: once it has returned, no call of the callback begins.
// The callback itself may call it. Deregistering twice is ND_INVALID_HANDLE.
func (c *ProviderControl) DeregisterForAdapterStatus(r *AdapterRegistration) error {
	const op = "ProviderControl.DeregisterForAdapterStatus"
	if r == nil || r.control.provider != c.provider {
		return refuse(StatusInvalidHandle, op, "not a registration of this provider")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return refuse(StatusInvalidHandle, op, "deregistered already")
	}
	r.done = true
	c.provider.unsubscribe(r.sub)
	return nil
}

func statusOf(d *verbs.Device) AdapterStatus {
	a, err := d.Query()
	if err != nil {
		return AdapterIsDown
	}
	var s AdapterStatus
	if !a.Up {
		s |= AdapterIsDown
	}
	if a.RoCE == verbs.RoCENone || a.MaxMessage == 0 { // by roce_mode, or *NetworkDirect
		s |= AdapterRDMADisabled
	}
	return s
}

func (r *AdapterRegistration) handle(d *verbs.Device, e verbs.Event) {
	switch e.Type {
	case verbs.EventPortActive, verbs.EventPortDown, verbs.EventDeviceFatal:
	default:
		if e.Missed == 0 {
			return
		}
	}
	if e.Device != r.index && e.Missed == 0 {
		return
	}
	status := statusOf(d)
	if e.Type == verbs.EventDeviceFatal && e.Device == r.index && status&AdapterIsDown == 0 {
		r.tell(AdapterIsDown | AdapterRDMADisabled) // it is up again already, after a restart
	}
	r.tell(status)
}

// tell calls the callback if the status is another than the one before.
func (r *AdapterRegistration) tell(status AdapterStatus) {
	r.mu.Lock()
	tell := !r.done && status != r.last
	r.last = status
	r.mu.Unlock()
	if tell {
		r.fn(r.addr, status)
	}
}
