package device

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// attached reports whether the QP receives what is sent to a group.
func (q *qp) attached(mgid ib.GID) bool { return slices.Contains(q.groups, netip.AddrFrom16(mgid)) }

// echo delivers what the adapter sends to groups to its own QPs that are attached to them, because
// switches do not send it back to its source (IBA 10.5.3.2).
func (a *adapter) echo(now clock.Time, frames []frame.Out) {
	if len(a.groups) == 0 {
		return
	}
	for i := range frames {
		o := &frames[i]
		if o.Route.IB.DLID < ib.LIDFirstMulticast || a.groups[o.Route.Dst] == 0 {
			continue
		}
		b := append([]byte(nil), o.Head[o.HeadStart:o.HeadEnd]...)
		b = append(append(b, o.Payload...), o.Tail[:o.TailLen]...)
		in := []frame.In{{Data: b, Raw: true}}
		if a.panel.All()[0].Encap.Open(in) == 1 {
			a.engine.Receive(now, in)
		}
	}
}
