package verbs

import (
	"context"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// sourceTime is the most that Source waits for an answer from the network.
const sourceTime = time.Second

// Source returns the address of the adapter from which to reach remote, as rdma_resolve_addr chooses it: that
// of an InfiniBand port in whose fabric somebody has the address, else the one that the system's routes choose.
// It asks the network, for at most 1 s. Errors: ErrNetworkUnreachable, ErrHostUnreachable, ErrTimedOut,
// ErrCanceled, ErrInvalid.
func (h *Host) Source(ctx context.Context, remote netip.Addr) (netip.Addr, error) {
	const op = "choose adapter"
	to := netip.AddrPortFrom(remote.Unmap(), 1)
	if !remote.IsValid() || remote.IsUnspecified() {
		return netip.Addr{}, &Error{Op: op, Addr: to, Class: ErrInvalid, Detail: "remote is not the address of a host"}
	}
	id, err := (&Device{host: h, index: command.AnyAdapter}).newID(command.TCP)
	if err != nil {
		return netip.Addr{}, err
	}
	defer id.Close()
	c := id.cm
	n, err := c.make()
	if err != nil {
		return netip.Addr{}, err
	}
	if err := c.move(op, cmConnecting, cmIdle); err != nil {
		return netip.Addr{}, err
	}
	c.mu.Lock()
	c.remote = to
	c.mu.Unlock()
	r := command.CMResolveAddr{ID: n, Remote: endpoint(to), Timeout: uint32(sourceTime.Milliseconds())}
	if err := h.backend.CMResolveAddr(ctx, r); err != nil {
		return netip.Addr{}, wrapCtxAddr(ctx, op, to, err)
	}
	state, err := c.await(ctx, cmConnecting)
	if state != cmResponded {
		return netip.Addr{}, wrapCtxAddr(ctx, op, to, err)
	}
	return id.LocalAddr().Addr(), nil
}
