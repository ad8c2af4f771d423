package rdmanet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/softvpi/softvpi/nd"
)

// noReads are the read limits of connections: rdmanet issues no reads.
var noReads = nd.ConnectParams{}

// Dialer opens connections. The zero value is ready to use.
type Dialer struct {
	// Adapter to connect from; nil: one of those that nd.Open finds, chosen by the destination address.
	Adapter *nd.Adapter
	Buffers Buffers
	// KeepAlive is the time without a sign of the peer after which it is probed; 0: 15 s, negative: it is not
	// probed. See Conn.SetKeepAlive.
	KeepAlive time.Duration
}

// Dial connects to the program that listens at address, "host:port".
func Dial(address string) (*Conn, error) {
	return (&Dialer{}).Dial(context.Background(), address)
}

// DialContext is Dial with the signature that http.Transport expects. The network is "rdma" or "tcp",
// optionally followed by 4 or 6.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := family(network); err != nil {
		return nil, err
	}
	c, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err // not a nil *Conn in an interface
	}
	return c, nil
}

// Dial connects to the program that listens at address, "host:port".
func (d *Dialer) Dial(ctx context.Context, address string) (*Conn, error) {
	return d.dial(ctx, "rdma", address)
}

func (d *Dialer) dial(ctx context.Context, network, address string) (*Conn, error) {
	candidates, err := resolve(ctx, network, address)
	if err != nil {
		return nil, opError("dial", nil, err)
	}
	var errs []error
	for _, remote := range candidates {
		c, err := d.dialAddr(ctx, remote)
		if err == nil {
			return c, nil
		}
		errs = append(errs, opError("dial", Addr{remote}, err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, errors.Join(errs...)
}

func (d *Dialer) dialAddr(ctx context.Context, remote netip.AddrPort) (*Conn, error) {
	buffers := d.Buffers
	if err := buffers.complete(); err != nil {
		return nil, err
	}
	a := d.Adapter
	if a == nil {
		var err error
		if a, err = defaults.towards(ctx, remote.Addr()); err != nil {
			return nil, err
		}
	}
	c, err := newConn(ctx, a, buffers)
	if err != nil {
		return nil, err
	}
	if err := c.connect(ctx, remote, d.KeepAlive); err != nil {
		_ = c.end.close(c)
		return nil, err
	}
	return c, nil
}

func (c *Conn) connect(ctx context.Context, remote netip.AddrPort, keepAlive time.Duration) error {
	e, p := c.end, noReads
	p.PrivateData = e.hello()
	if err := e.connector.Connect(ctx, e.qp, remote, p); err != nil {
		return err
	}
	private, err := e.connector.GetPrivateData()
	if err != nil {
		return err
	}
	peer, err := parseHello(private)
	if err != nil {
		_ = e.connector.Reject(nil)
		return err
	}
	if err := e.connector.CompleteConnect(ctx); err != nil {
		return err
	}
	return c.established(peer, keepAlive)
}

func opError(op string, addr net.Addr, err error) error {
	return &net.OpError{Op: op, Net: "rdma", Addr: addr, Err: err}
}

// family returns the address family of a network's name: "ip", "ip4" or "ip6".
func family(network string) (string, error) {
	switch network {
	case "rdma", "tcp":
		return "ip", nil
	case "rdma4", "tcp4":
		return "ip4", nil
	case "rdma6", "tcp6":
		return "ip6", nil
	}
	return "", net.UnknownNetworkError(network)
}

// resolve returns the addresses that "host:port" stands for.
func resolve(ctx context.Context, network, address string) ([]netip.AddrPort, error) {
	ip, err := family(network)
	if err != nil {
		return nil, err
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		n, lookupErr := net.DefaultResolver.LookupPort(ctx, "tcp", service)
		if lookupErr != nil {
			return nil, lookupErr
		}
		port = uint64(n)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, ip, host)
	if err != nil {
		return nil, err
	}
	list := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		list[i] = netip.AddrPortFrom(a.Unmap(), uint16(port))
	}
	return list, nil
}

// defaults holds the adapters for programs that name none. They are opened on first use and stay open.
var defaults defaultAdapters

type defaultAdapters struct {
	mu       sync.Mutex
	provider *nd.Provider
	open     map[netip.Addr]*nd.Adapter
}

func (d *defaultAdapters) start(ctx context.Context) error {
	if d.provider != nil {
		return nil
	}
	p, err := nd.Open(ctx, nd.Options{})
	if err != nil {
		return err
	}
	d.provider, d.open = p, make(map[netip.Addr]*nd.Adapter)
	return nil
}

// towards returns the adapter from which to reach remote.
func (d *defaultAdapters) towards(ctx context.Context, remote netip.Addr) (*nd.Adapter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	local, err := d.provider.LocalAddress(remote)
	if err != nil {
		return nil, err
	}
	return d.adapter(local)
}

// at returns the adapter with a local address, or any adapter if it is unspecified.
func (d *defaultAdapters) at(ctx context.Context, local netip.Addr) (*nd.Adapter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	if local.IsUnspecified() {
		list, err := d.provider.QueryAddressList()
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("rdmanet: there is no adapter")
		}
		local = list[0]
	}
	return d.adapter(local)
}

func (d *defaultAdapters) adapter(local netip.Addr) (*nd.Adapter, error) {
	if a := d.open[local]; a != nil {
		return a, nil
	}
	a, err := d.provider.OpenAdapterAt(local)
	if err != nil {
		return nil, err
	}
	d.open[local] = a
	return a, nil
}
