package nd

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/eth"
)

// Options says how Open finds the adapters; see verbs.Options. The zero value attaches to the driver if
// one is running and otherwise embeds an adapter.
type Options = verbs.Options

// Provider lists and opens the adapters that a program can reach.
type Provider struct {
	host *verbs.Host
	own  bool // Close closes the host

	mu       sync.Mutex
	closed   bool
	watching bool
	done     chan struct{}
	cancel   context.CancelFunc
	subs     map[*subscription]struct{}
}

// Open returns a provider that is attached to the driver process or has adapters embedded in this one.
func Open(ctx context.Context, o Options) (*Provider, error) {
	host, err := verbs.Open(ctx, o)
	if err != nil {
		return nil, fail("Open", err)
	}
	p := NewProvider(host)
	p.own = true
	return p, nil
}

// NewProvider returns a provider for the adapters of host, which the caller closes.
func NewProvider(host *verbs.Host) *Provider {
	return &Provider{host: host, subs: make(map[*subscription]struct{})}
}

// Host returns the underlying session, for what NetworkDirect does not offer.
func (p *Provider) Host() *verbs.Host { return p.host }

// QueryAddressList returns the local addresses of all adapters.
func (p *Provider) QueryAddressList() ([]netip.Addr, error) {
	const op = "Provider.QueryAddressList"
	devices, err := p.devices(op)
	if err != nil {
		return nil, err
	}
	return addrsOf(op, devices)
}

// addrsOf returns the IP addresses of devices.
func addrsOf(op string, devices []*verbs.Device) ([]netip.Addr, error) {
	var list []netip.Addr
	for _, d := range devices {
		addrs, err := deviceAddrs(d)
		if errors.Is(err, verbs.ErrRemoved) {
			continue // disabled: its addresses cannot be used
		}
		if err != nil {
			return nil, fail(op, err)
		}
		list = append(list, addrs...)
	}
	return list, nil
}

func (p *Provider) devices(op string) ([]*verbs.Device, error) {
	devices, err := p.host.Devices(context.Background())
	return devices, fail(op, err)
}

// deviceAddrs returns the IP addresses of a device, its main one first.
func deviceAddrs(d *verbs.Device) ([]netip.Addr, error) {
	list := []netip.Addr{d.Addr()}
	gids, err := d.GIDs()
	if err != nil {
		return nil, err
	}
	for _, g := range gids {
		if g.RoCE != verbs.RoCEv1 && !slices.Contains(list, g.Addr) {
			list = append(list, g.Addr)
		}
	}
	return list, nil
}

// ResolveAddress returns the id of the adapter that has the local address.
func (p *Provider) ResolveAddress(addr netip.Addr) (uint64, error) {
	d, err := p.deviceAt("Provider.ResolveAddress", addr)
	if err != nil {
		return 0, err
	}
	return adapterID(d), nil
}

func adapterID(d *verbs.Device) uint64 { return d.Limits().GUID }

func (p *Provider) deviceAt(op string, addr netip.Addr) (*verbs.Device, error) {
	if !addr.IsValid() || addr.IsUnspecified() {
		return nil, refuse(StatusInvalidAddress, op, "%v is not the address of an adapter", addr)
	}
	d, err := p.host.DeviceByAddr(addr)
	return d, failAddr(op, netip.AddrPortFrom(addr, 0), err)
}

// OpenAdapter opens the adapter with an id from ResolveAddress.
func (p *Provider) OpenAdapter(id uint64) (*Adapter, error) {
	devices, err := p.devices("Provider.OpenAdapter")
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if adapterID(d) == id {
			return newAdapter(p, d)
		}
	}
	return nil, refuse(StatusInvalidParameter, "Provider.OpenAdapter", "no adapter has the id %#x", id)
}

// OpenAdapterAt opens the adapter that has the local address: ResolveAddress and
// OpenAdapter in one step.
func (p *Provider) OpenAdapterAt(addr netip.Addr) (*Adapter, error) {
	d, err := p.deviceAt("Provider.OpenAdapterAt", addr)
	if err != nil {
		return nil, err
	}
	return newAdapter(p, d)
}

// LocalAddress returns the adapter address from which to reach remote (NdResolveAddress): that of an
// InfiniBand port in whose fabric somebody has the address, else the one that the system's routes choose if
// an adapter has it, else the first of remote's family, preferably not remote itself. If there are
// InfiniBand and other adapters, it asks the network, for at most 1 s.
func (p *Provider) LocalAddress(remote netip.Addr) (netip.Addr, error) {
	const op = "Provider.LocalAddress"
	remote = remote.Unmap()
	if !remote.IsValid() || remote.IsUnspecified() {
		return netip.Addr{}, refuse(StatusInvalidAddress, op, "%v is not the address of a host", remote)
	}
	devices, err := p.devices(op)
	if err != nil {
		return netip.Addr{}, err
	}
	ethernet := slices.DeleteFunc(slices.Clone(devices), func(d *verbs.Device) bool { return d.Limits().RoCE == verbs.InfiniBand })
	if mixed := len(ethernet) > 0 && len(ethernet) < len(devices); mixed {
		if local, err := p.host.Source(context.Background(), remote); err == nil {
			return local, nil
		}
		devices = ethernet // no InfiniBand port knows the address
	}
	list, err := addrsOf(op, devices)
	if err != nil {
		return netip.Addr{}, err
	}
	return nearest(op, list, remote)
}

// nearest returns the one of local addresses from which to reach remote.
func nearest(op string, list []netip.Addr, remote netip.Addr) (netip.Addr, error) {
	if routed, ok := routeSource(remote); ok && routed != remote && slices.Contains(list, routed) {
		return routed, nil
	}
	best := netip.Addr{}
	for _, a := range list {
		if a.Is4() != remote.Is4() || a.IsLinkLocalUnicast() != remote.IsLinkLocalUnicast() {
			continue
		}
		if a != remote {
			return a, nil
		}
		best = a
	}
	if !best.IsValid() {
		return netip.Addr{}, refuse(StatusNetworkUnreachable, op, "no adapter has an address of the family of %s", remote)
	}
	return best, nil
}

// routeSource asks the system for the source address towards remote; it sends nothing.
func routeSource(remote netip.Addr) (netip.Addr, bool) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, eth.PortRoCEv2)))
	if err != nil {
		return netip.Addr{}, false
	}
	defer c.Close()
	local, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return local.AddrPort().Addr().Unmap(), true
}

// Close releases the provider. If Open created it, the session with the adapters ends, and all its objects
// with it.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.closed = true
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
	if !p.own {
		return nil
	}
	return fail("Provider.Close", p.host.Close())
}
