package device

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
)

// defaultGIDInterval is the default of UpdateGIDTimerFrequency (WinOF manual 4.6.9.3).
const defaultGIDInterval = 3 * time.Second

// setGIDs sets the rows of the GID table for a port with these addresses, and reports whether anything
// changed.
func (a *adapter) setGIDs(addrs []netip.Addr) bool {
	if a.ib != nil {
		return a.gids.SetPort(a.ib.Settings())
	}
	return a.gids.Set(encap.Mode(a.cfg.RoCE), a.mac, a.cfg.VLAN, addrs)
}

// followAddresses checks the addresses, MTUs and states of the interfaces every GIDInterval (UpdateGIDTimerFrequency),
// without holding the loop lock, and updates the GID tables.
func (h *Host) followAddresses() {
	defer h.wg.Done()
	every := h.cfg.GIDInterval
	for {
		var due <-chan time.Time // never
		if every > 0 {
			due = time.After(every)
		}
		select {
		case <-h.done:
			return
		case every = <-h.gidInterval:
		case <-due:
			h.updateGIDs()
		}
	}
}

// updateGIDs checks the addresses and MTUs of the interfaces now.
func (h *Host) updateGIDs() {
	h.lock()
	adapters := slices.Clone(h.adapters)
	configured := make([]AdapterConfig, len(adapters))
	for i, a := range adapters {
		configured[i] = a.cfg // it may change while the system is asked
	}
	h.unlock()
	for i, a := range adapters {
		cfg := &configured[i]
		h.updateWire(a, cfg)
		if !cfg.FollowInterface || !cfg.visible() {
			continue
		}
		addrs, _, present := gid.Interface(cfg.Addr)
		h.lock()
		a.readdress(addrs, present)
		h.finish()
	}
}

// updateWire checks the state and MTU of the interface or link of an adapter with this configuration now. The loop follows those of
// links of whole frames while it drives their ports.
func (h *Host) updateWire(a *adapter, cfg *AdapterConfig) {
	w, ok := h.wireOf(cfg)
	h.lock()
	defer h.finish()
	a.port.conflicts()
	if ok {
		a.heed(w)
		return
	}
	a.port.hear()
	a.followWire()
}

// source returns the port's source address for packets to remote: the first of remote's family, else the
// port's first.
func (a *adapter) source(remote netip.Addr) netip.Addr {
	if a.ib != nil {
		return a.ib.Source(remote, a.cfg.Addr)
	}
	if a.cfg.Addr.Is4() == remote.Is4() {
		if c, ok := a.customerFor(remote); ok {
			return c
		}
		return a.cfg.Addr
	}
	if a.macBased() {
		for _, addr := range a.links.Addrs() {
			if addr.Is4() == remote.Is4() {
				return addr
			}
		}
	}
	if addr, ok := a.gids.First(remote.Is4()); ok {
		return addr
	}
	return a.cfg.Addr
}

// PortAddresses are the addresses of an adapter's port.
type PortAddresses struct {
	MAC    net.HardwareAddr
	Others [][6]byte    // MACs of the other functions at the port, if they are not the same
	Served []netip.Addr // those in its GID table
	// Most is how many fit into the table, and Unused how many did not.
	Most, Unused int
}

// Addresses returns the addresses of an adapter's port, the zero value if there is no such adapter.
func (h *Host) Addresses(index uint32) PortAddresses {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return PortAddresses{}
	}
	out := PortAddresses{MAC: slices.Clone(a.mac[:]), Most: gid.Most, Unused: a.gids.Unused()}
	for _, o := range a.port.functions {
		if o.mac != a.mac {
			out.Others = append(out.Others, o.mac)
		}
	}
	for _, g := range a.gids.List() {
		out.Served = append(out.Served, netip.AddrFrom16(g.GID).Unmap())
	}
	return out
}
