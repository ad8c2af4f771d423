package device

import (
	"context"
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
)

// SetInterface says how to find the IPoIB interface of an adapter; find's result false: there is none now. It is called
// without the loop lock. The error is NotFound, or Invalid if its port is not InfiniBand.
func (h *Host) SetInterface(index uint32, find func() (command.Interface, bool)) error {
	h.lock()
	defer h.finish()
	a, err := h.infiniBand(index)
	if err != nil {
		return err
	}
	a.ipoib = find
	return nil
}

// SetLinkAddresses says how to find the link-layer addresses of an adapter's IPoIB interfaces, as SetInterface does.
func (h *Host) SetLinkAddresses(index uint32, find func() []command.LinkAddress) error {
	h.lock()
	defer h.finish()
	a, err := h.infiniBand(index)
	if err != nil {
		return err
	}
	a.hardware = find
	return nil
}

// SetFirmware says what the device of an adapter runs now.
func (h *Host) SetFirmware(index uint32, f command.Firmware) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err == nil {
		a.cfg.Firmware = f
	}
	return err
}

// Firmware implements command.Extended.
func (c *Client) Firmware(ctx context.Context, index uint32) (command.Firmware, error) {
	if err := c.enter(ctx); err != nil {
		return command.Firmware{}, err
	}
	defer c.host.unlock()
	a, err := c.adapter(index)
	if err != nil {
		return command.Firmware{}, err
	}
	f := a.cfg.Firmware
	if f.Version == [64]byte{} {
		copy(f.Version[:], firmware.Engine.String())
	}
	return f, nil
}

// LinkAddresses implements command.Extended. Like Interfaces it is without the loop lock.
func (c *Client) LinkAddresses(ctx context.Context, index uint32) ([]command.LinkAddress, error) {
	a, err := c.begin(ctx, index)
	if err != nil {
		return nil, err
	}
	find := a.hardware
	c.host.unlock()
	if find == nil {
		return nil, nil
	}
	return find(), nil
}

// Interfaces implements command.Commands. It asks the system, without the loop lock.
func (c *Client) Interfaces(ctx context.Context, index uint32) ([]command.Interface, error) {
	a, err := c.begin(ctx, index)
	if err != nil {
		return nil, err
	}
	rows, own, find, fabric := a.gids.List(), a.cfg.Addr, a.ipoib, a.ib != nil
	c.host.unlock()
	if !fabric {
		return ethernetInterfaces(rows, own), nil
	}
	if find == nil {
		return nil, nil
	}
	i, ok := find()
	if !ok {
		return nil, nil
	}
	i.Row = command.WholePort
	return []command.Interface{i}, nil
}

// ethernetInterfaces returns the interfaces that have an adapter's own address, and those of the rows of its GID table. A
// GID made of the MAC belongs to the interface of the port.
func ethernetInterfaces(rows []command.GID, own netip.Addr) (out []command.Interface) {
	holders := gid.Holders()
	add := func(row uint32, addr netip.Addr) {
		h, ok := holders.Of(addr)
		if !ok {
			return
		}
		i := command.Interface{Row: row, Index: uint32(h.Index), Namespace: holders.Namespace}
		copy(i.Name[:], h.Name)
		out = append(out, i)
	}
	add(command.WholePort, own)
	for _, r := range rows {
		addr := netip.AddrFrom16(r.GID).Unmap()
		if encap.Mode(r.RoCE) == encap.RoCEv1 {
			addr = own
		}
		add(r.Index, addr)
	}
	return out
}
