package device

import "github.com/softvpi/softvpi/internal/command"

// barred returns the error of whoever wants RDMA of an adapter that offers programs none (*NetworkDirect = 0), nil where it may: what
// the driver itself uses its adapters for, IP over InfiniBand and its self-check, goes on. Queues of frames are no RDMA.
func (c *Client) barred(a *adapter) error {
	switch {
	case c.cfg.OfDriver:
	case a.cfg.NoRDMA:
		return command.Errorf(command.Unsupported, "adapter %q: RDMA is switched off by the registry key *NetworkDirect", a.name)
	case a.noRDMA():
		return command.Errorf(command.Unsupported, "function %q: RDMA is switched off (rdma=off)", a.name)
	}
	return nil
}

// noRDMA reports whether an adapter or a virtual function offers programs no RDMA.
func (a *adapter) noRDMA() bool { return a.cfg.NoRDMA || a.virtual() && a.cfg.Virtual.NoRDMA }

// barredAll returns the error of an id that finds no adapter because those that would do offer no RDMA; nil: that is not why.
func (o *cmid) barredAll(would func(*adapter) bool) (err error) {
	for _, a := range o.client.host.adapters {
		if !a.enabled || !o.client.sees(a) || o.want != command.AnyAdapter && o.want != a.index || !would(a) {
			continue
		}
		if err = o.client.barred(a); err == nil {
			return nil
		}
	}
	return err
}

// permitted shows a program what it may do on an adapter: where it has no RDMA, no message is short enough.
func (c *Client) permitted(a *adapter, i command.AdapterInfo) command.AdapterInfo {
	if c.barred(a) != nil {
		i.MaxMessage, i.MaxReadResponder, i.MaxReadInitiator, i.MaxInline = 0, 0, 0, 0
	}
	return i
}
