package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/wire/ib"
)

// Resized says that an adapter, or a virtual function of it that is in a virtual subnet, has another MTU than before.
type Resized struct {
	Owner        uint32 // index of the adapter
	Function     string // the virtual function; empty: it is the adapter itself
	MTU, Before  uint32 // of the link, or of the virtual subnet
	PathMTU, Was uint32 // of RoCE
}

// followMTU adapts the port to a changed MTU of its link: new connections have the new path MTU. The path MTU of a running
// one cannot change (IBA 9.6.1): on the wire its packets that are too long are not sent, as a hardware
// port discards them, so that it ends when its retries are used up, unless all its messages fit.
func (a *adapter) followMTU(of int) {
	if uint32(of) == a.linkMTU {
		return
	}
	before, link := a.mtu, a.linkMTU
	if err := a.setMTU(of); err != nil {
		if of < LeastMTU {
			a.mtu = uint32(ib.MTU256.Bytes())
			a.report(notify.SmallMTU)
		}
		a.host.log.Warn("the interface's MTU is too small", "adapter", a.name, "cause", err)
	}
	a.links.SetMTU(of)
	a.port.followOverlay()
	a.nic.resize()
	a.resizeRaw()
	mtu, _ := ib.MTUFor(int(a.mtu))
	a.cm.SetMTU(mtu)
	a.host.log.Info("the interface's MTU has changed", "adapter", a.name, "mtu", of, "path_mtu_before", before, "path_mtu", a.mtu)
	longer := 0
	for _, q := range a.byNumber {
		if i := q.tq; i != nil && i.Route() != nil && a.engine.Query(i).Attr.MTU > a.mtu {
			longer++
		}
	}
	if longer > 0 {
		a.host.log.Warn("connections have a path MTU that the interface no longer carries", "adapter", a.name, "connections", longer)
	}
	a.tellResized(link, before)
}

// tellResized tells programs that the port has another path MTU, and whoever follows it of both MTUs. There is no event of verbs for
// that (IBA 11.6.3): an InfiniBand port whose subnet manager gives it another MTU is active anew, and so is this one
// (IBV_EVENT_PORT_ACTIVE), so that programs ask again. NetworkDirect says nothing of MTUs.
func (a *adapter) tellResized(link, path uint32) {
	if !a.linked() {
		return
	}
	if a.mtu != path && a.enabled {
		a.broadcast(command.EventPortActive)
	}
	r := Resized{Owner: a.index, MTU: a.linkMTU, Before: link, PathMTU: a.mtu, Was: path}
	if a.virtual() {
		if a.subnet() == 0 { // it has the adapter's
			return
		}
		r.Owner, r.Function = a.cfg.virtualOf, a.name
	}
	if a.host.cfg.Resized != nil {
		a.host.cfg.Resized(r)
	}
}
