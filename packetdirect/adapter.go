package packetdirect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// Options says where Open finds the adapter. The zero value takes the first adapter of the driver that carries whole frames.
type Options struct {
	// Adapter is the name of the adapter, or an address of it; empty: the first whose wire carries whole frames.
	Adapter string
	// Socket is the path of the driver's socket; empty: verbs.DefaultSocket.
	Socket string
	// Own makes an adapter of this process in place of one of the driver's; its Ethernet is required. nil: the driver's.
	Own *verbs.AdapterConfig
}

// Adapter is an adapter whose wire carries whole Ethernet frames, with the queues, pools and filters of this program.
type Adapter struct {
	dev  *verbs.Device
	host *verbs.Host // to be closed with the adapter; nil: the caller's
	pd   *verbs.PD
	port verbs.FramePort

	mu      sync.Mutex
	queues  map[*queue]bool
	spreads map[*Spread]bool
	pools   map[*Pool]bool
	closed  bool
}

// Open opens an adapter. Errors are those of package verbs: ErrNotFound (no such adapter, or none with a wire of whole frames),
// ErrUnsupported (its wire carries none), ErrAccess (only for programs of the driver's user and root) and those of verbs.Open.
func Open(ctx context.Context, o Options) (*Adapter, error) {
	s := verbs.Options{Mode: verbs.Attached, Socket: o.Socket}
	if o.Own != nil {
		if o.Own.Ethernet == nil {
			return nil, failed("open", verbs.ErrInvalid, "Own.Ethernet is nil, want the wire of the adapter")
		}
		if o.Socket != "" {
			return nil, failed("open", verbs.ErrInvalid, "Socket and Own are given, want one")
		}
		s = verbs.Options{Mode: verbs.Embedded, Embed: verbs.Config{Adapters: []verbs.AdapterConfig{*o.Own}}}
	}
	h, err := verbs.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	d, err := find(ctx, h, o.Adapter)
	if err == nil {
		var a *Adapter
		if a, err = On(d); err == nil {
			a.host = h
			return a, nil
		}
	}
	return nil, errors.Join(err, h.Close())
}

// find returns the adapter with a name or address, or the first that carries whole frames.
func find(ctx context.Context, h *verbs.Host, name string) (*verbs.Device, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return h.DeviceByAddr(addr)
	}
	if name != "" {
		return h.Device(name)
	}
	devices, err := h.Devices(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if _, err := d.FramePort(); err == nil {
			return d, nil
		} else if !errors.Is(err, verbs.ErrUnsupported) && !errors.Is(err, verbs.ErrRemoved) {
			return nil, err
		}
	}
	return nil, failed("open", verbs.ErrNotFound, "none of %d adapters has a wire of whole Ethernet frames", len(devices))
}

// On opens an adapter of a session that the program has already, which Close leaves open.
func On(d *verbs.Device) (*Adapter, error) {
	port, err := d.FramePort()
	if err != nil {
		return nil, err
	}
	pd, err := d.AllocPD()
	if err != nil {
		return nil, err
	}
	return &Adapter{dev: d, pd: pd, port: port, queues: map[*queue]bool{}, spreads: map[*Spread]bool{}, pools: map[*Pool]bool{}}, nil
}

// Name returns the adapter's name.
func (a *Adapter) Name() string { return a.dev.Name() }

// MAC returns the adapter's MAC. Frames to it, to groups, and to MACs that filters name reach the port.
func (a *Adapter) MAC() [6]byte { return a.port.MAC }

// LongestFrame returns the length of the longest frame in bytes, without FCS, as of when the adapter was opened: the wire's
// MTU, 14 bytes, and 4 of a tag.
func (a *Adapter) LongestFrame() int { return int(a.port.Longest) }

// Close ends the queues, spreads, filters and pools, whose memory must not be used any more. Closing twice is harmless.
func (a *Adapter) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	queues, spreads, pools := a.queues, a.spreads, a.pools
	a.queues, a.spreads, a.pools = nil, nil, nil
	a.mu.Unlock()
	var errs []error
	for s := range spreads {
		errs = append(errs, s.end())
	}
	for q := range queues {
		errs = append(errs, q.end())
	}
	for p := range pools {
		errs = append(errs, p.mr.Deregister())
	}
	errs = append(errs, a.pd.Close())
	if a.host != nil {
		errs = append(errs, a.host.Close())
	}
	return errors.Join(errs...)
}

// add records what ends with the adapter; false: it is closed.
func (a *Adapter) add(record func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		record()
	}
	return !a.closed
}

func failed(op string, class error, format string, args ...any) error {
	return &verbs.Error{Op: "packetdirect: " + op, Class: class, Detail: fmt.Sprintf(format, args...)}
}
