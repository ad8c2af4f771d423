package device

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
)

// macBased reports whether the port's GID is made from its MAC (RoCE v1, annex A16): its IP addresses then name it to
// programs alone, and packets go between GIDs.
func (a *adapter) macBased() bool { return a.cfg.RoCE == RoCEv1 }

// named reports whether an IP address that is no GID names the port.
func (a *adapter) named(ip netip.Addr) bool {
	return a.macBased() && slices.Contains(a.links.Addrs(), ip)
}

// gidOf returns the GID of the port that has an IP address, made from the MAC to which packets for it go. ok is false while
// that is not known.
func (a *adapter) gidOf(local, remote netip.Addr) (of netip.Addr, ok bool, err error) {
	r := frame.Route{Src: local, Dst: remote, SrcPort: a.cfg.UDPPort}
	err = a.prepare(&r)
	r.Release()
	return gid.FromMAC(r.DstMAC, a.cfg.VLAN), err == nil && r.DstMAC != [6]byte{}, err
}

// connectByMAC connects as soon as the peer's MAC is known. Later failures are reported as events.
func (o *cmid) connectByMAC(now clock.Time, n cm.Connect, q *qp) error {
	a, remote := o.adapter, n.Remote.Addr()
	to, ok, err := a.gidOf(n.Local, remote)
	if err != nil {
		return err
	}
	n.LocalGID, n.RemoteGID = gid.FromMAC(a.mac, a.cfg.VLAN), to
	if ok {
		if err := a.cm.Connect(now, o.id, n); err != nil {
			return cm.CommandError(err)
		}
		o.state = cmConnecting
		o.take(q)
		return nil
	}
	if n.Timeout == 0 {
		n.Timeout = cm.DefaultConnectTimeout
	}
	until := now.Add(n.Timeout)
	n.Private = append([]byte(nil), n.Private...)
	o.state = cmConnecting
	o.take(q)
	asked := o.lookFor(remote, n.Timeout, func(err error) {
		now := a.host.now()
		if err == nil {
			n.RemoteGID, ok, err = a.gidOf(n.Local, remote)
			if err == nil && !ok {
				err = command.Errorf(command.TimedOut, "%v does not answer", remote)
			}
		}
		if err != nil {
			o.unreached(command.EventUnreachable, &command.Error{Code: codeOf(err), Detail: err.Error()})
			return
		}
		if n.Timeout = until.Sub(now); n.Timeout <= 0 {
			n.Timeout = time.Nanosecond
		}
		if err := a.cm.Connect(now, o.id, n); err != nil {
			o.unreached(command.EventConnectError, asError(cm.CommandError(err)).(*command.Error))
		}
	})
	if !asked { // nobody would ever tell
		o.unreached(command.EventUnreachable, command.Errorf(command.HostUnreachable, "the link does not know the MAC of %v", remote))
	}
	return nil
}

// lookFor asks the link for the neighbour through which an address is reached, on a goroutine beside the loop, and then
// calls done with the loop lock held, unless the id was destroyed or its adapter disabled meanwhile. It returns false if the
// link need not be asked.
func (o *cmid) lookFor(remote netip.Addr, timeout time.Duration, done func(err error)) bool {
	h, a := o.client.host, o.adapter
	p := a.links.For(o.local.Addr())
	if p == nil {
		p = a.links.For(a.source(remote))
	}
	if p == nil {
		return false
	}
	link := p.Resolver()
	if link == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	o.stop = cancel
	go func() {
		err := link.Resolve(ctx, remote)
		cancel()
		h.lock()
		defer h.finish()
		if o.client.cms.Get(o.handle) != o || o.removed || o.adapter != a {
			return
		}
		o.stop = nil
		done(unanswered(err))
	}()
	return true
}

// agrees returns why the adapter cannot talk to an address of another adapter of this host: their RoCE modes differ.
func (a *adapter) agrees(remote netip.Addr) error {
	b := owner(a.host.adapters, remote)
	if b == nil || b == a || !b.enabled || a.ib != nil || b.ib != nil || a.cfg.RoCE == b.cfg.RoCE {
		return nil
	}
	return command.Errorf(command.HostUnreachable, "adapter %q is set to RoCE %s, and adapter %q, which has %v, to %s", a.name, roceVersion(a.cfg.RoCE),
		b.name, remote, roceVersion(b.cfg.RoCE))
}

// modeInterval is how often subscribers are told that RoCE packets of another mode arrive, at most.
const modeInterval = time.Minute

// hearModes tells subscribers that RoCE packets of another mode have arrived for the adapter: whoever sends them waits in vain for an
// answer, since this end knows no packets that the other would understand.
func (a *adapter) hearModes(now clock.Time) {
	if a.ib != nil || !a.enabled || now < a.modeDue {
		return
	}
	if n := a.links.Counters().OtherMode; n != a.otherMode {
		a.otherMode, a.modeDue = n, now.Add(modeInterval)
		a.report(notify.OtherMode)
	}
}

// roceVersion returns a RoCE mode as written in the manuals.
func roceVersion(mode uint32) string {
	switch mode {
	case RoCEv1:
		return "v1"
	case RoCEv125:
		return "v1.25"
	}
	return "v2"
}
