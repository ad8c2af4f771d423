package device

import (
	"context"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

// inquiryTime is how long the choice of an adapter waits for what InfiniBand ports know about a destination.
const inquiryTime = time.Second

// undecided returns the InfiniBand ports that must be asked before an adapter is chosen for a destination: it may
// be in their fabric, or else another adapter must be taken. There are none if the id or the program has chosen,
// if no other adapter could be meant, or if it is known where the destination is.
func (o *cmid) undecided(from command.Endpoint, remote netip.Addr) []*adapter {
	if o.adapter != nil && !o.wildcard || !from.Addr.IP().IsUnspecified() {
		return nil
	}
	if !remote.IsValid() || remote.IsUnspecified() || remote.IsMulticast() || remote.IsLoopback() {
		return nil
	}
	var ports []*adapter
	may := o.candidates(nil, remote)
	for _, a := range may {
		if a.owns(remote) || a.ib != nil && a.ib.Knows(remote) {
			return nil
		}
		if a.ib != nil && a.ib.Active() {
			ports = append(ports, a)
		}
	}
	if len(may) == 1 {
		return nil
	}
	return ports
}

// inquire asks ports which of them reaches the destination, and then goes on to resolve it: an adapter that was
// found knows it from then on. It waits on a goroutine beside the loop.
func (o *cmid) inquire(now clock.Time, ports []*adapter, r command.CMResolveAddr) {
	c := o.client
	ctx, cancel := context.WithTimeout(context.Background(), min(inquiryTime, max(time.Duration(r.Timeout)*time.Millisecond, leastWait)))
	o.stop = cancel
	answers := make(chan bool, len(ports))
	for _, a := range ports {
		a.ib.Find(now, r.Remote.Addr.IP(), func(_ clock.Time, _ ib.GID, err error) { answers <- err == nil })
	}
	go func() {
		for found, n := false, 0; !found && n < len(ports); n++ {
			select {
			case found = <-answers:
			case <-ctx.Done():
				n = len(ports)
			}
		}
		cancel()
		c.host.lock()
		defer c.host.finish()
		if c.cms.Get(o.handle) != o || o.removed {
			return // the id was destroyed meanwhile
		}
		o.stop = nil
		if o.state != cmIdle && o.state != cmBound {
			return
		}
		o.resolveAddr(&r)
	}()
}
