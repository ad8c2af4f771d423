package device

import (
	"context"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/mad"
)

// resolve waits until the adapter returned by which knows how to reach av, if av identifies an InfiniBand
// port by its address alone. It does not hold the loop lock while waiting.
func (c *Client) resolve(ctx context.Context, which func() *adapter, av command.AddressVector) error {
	ip := av.Addr.IP()
	if !c.host.onFabric.Load() || av.LID != 0 || ip.IsUnspecified() {
		return nil
	}
	return c.answered(ctx, which, func(a *adapter, now clock.Time, done func(error)) {
		over := func(err error) {
			if err != nil {
				err = ibport.Error(ip, err)
			}
			done(err)
		}
		if ip.IsMulticast() {
			a.ib.SendTo(now, ip, over)
			return
		}
		if _, known := a.ib.Known(now, ip); known {
			done(nil)
			return
		}
		a.ib.Reach(now, ip, func(_ clock.Time, _ *mad.PathRecord, err error) { over(err) })
	})
}

// answered starts something at an InfiniBand adapter and waits until it is done. If which returns an
// Ethernet adapter or nil, there is nothing to wait for. When the adapter is disabled meanwhile, which ends all
// timers of its port, the error is Removed.
func (c *Client) answered(ctx context.Context, which func() *adapter, start func(a *adapter, now clock.Time, done func(error))) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	a := which()
	if a == nil || a.ib == nil || !a.enabled {
		c.host.unlock()
		return nil
	}
	over := make(chan error, 1)
	leaves := a.leaves
	start(a, c.host.now(), func(err error) { over <- err })
	c.host.finish()
	select {
	case err := <-over:
		return err
	case <-leaves:
		return errRemoved()
	case <-ctx.Done():
		return command.Ended(ctx)
	}
}

// retire takes an enabled adapter out of use, and ends the waits for its port.
func (a *adapter) retire() {
	a.enabled = false
	a.port.listPolling()
	close(a.leaves)
}

// ownerOf returns the adapter of a QP, nil if there is no such QP. The caller holds the loop lock.
func (c *Client) ownerOf(h command.Handle) *adapter {
	if q := c.qps.Get(h); q != nil && q.tq != nil {
		return q.adapter
	}
	return nil
}

// AskSA sends a request to the subnet administration of an adapter's port and waits for the answer. Errors
// are *sa.StatusError, those of package sa, and *command.Error.
func (h *Host) AskSA(ctx context.Context, index uint32, r sa.Request) ([mad.SADataLen]byte, error) {
	h.lock()
	a, err := h.infiniBand(index)
	if err != nil {
		h.unlock()
		return [mad.SADataLen]byte{}, err
	}
	over := make(chan sa.Answer, 1)
	leaves := a.leaves
	a.ib.Ask(h.now(), r, func(_ clock.Time, answer *sa.Answer) { over <- *answer })
	h.finish()
	select {
	case answer := <-over:
		return answer.Data, answer.Err
	case <-leaves:
		return [mad.SADataLen]byte{}, errRemoved()
	case <-ctx.Done():
		return [mad.SADataLen]byte{}, command.Ended(ctx)
	}
}

// SetSARepetition sets after which time and how often requests to the subnet administration of an
// InfiniBand port are retransmitted (SaTimeout, SaRetries); 0: 1 s and 10. The errors are those of
// SetResolver, and Invalid.
func (h *Host) SetSARepetition(index uint32, timeout time.Duration, retries int) error {
	h.lock()
	defer h.finish()
	a, err := h.infiniBand(index)
	if err != nil {
		return err
	}
	if err := a.ib.SetRepetition(timeout, retries); err != nil {
		return command.Errorf(command.Invalid, "%v", err)
	}
	return nil
}
