package fabric

import (
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// lossy loses packets on some links.
type lossy struct {
	on     bool
	rates  []uint64 // by sending port, out of 2^64
	random func() uint64
}

// lost reports whether a packet that the port sends is to be lost on its link.
func (f *Fabric) lost(out *port) bool {
	rate := f.loss.rates[f.index(out)]
	return rate != 0 && f.loss.random() < rate
}

// SetLoss makes a link lose packets in both directions. share is the probability, 0 to 1.
func (f *Fabric) SetLoss(at Place, share float64) {
	if f.loss.rates == nil {
		f.loss.rates = make([]uint64, len(f.ports))
	}
	rate := uint64(1<<64 - 1)
	if share < 1 {
		rate = uint64(max(share, 0) * (1 << 64))
	}
	p := f.port(at)
	f.loss.rates[f.index(p)], f.loss.rates[p.peer] = rate, rate
	f.loss.on = slices.ContainsFunc(f.loss.rates, func(r uint64) bool { return r != 0 })
}

// Check verifies that the port exists and has a link. The error is a *nodeError.
func (f *Fabric) Check(at Place) error {
	n := &f.nodes[at.Node]
	if at.Port == 0 || at.Port > n.count || f.port(at).peer == noPort {
		return &nodeError{Name: n.description.String(), Port: int(at.Port), Most: int(n.count)}
	}
	return nil
}

// Unlink pulls the cable at a port, which must have one.
func (f *Fabric) Unlink(now clock.Time, at Place) {
	f.traps.now = now
	p := f.port(at)
	p.cut, f.ports[p.peer].cut = true, true
	f.lose(p)
}

// Relink plugs the cable at a port in again.
func (f *Fabric) Relink(now clock.Time, at Place) {
	f.traps.now = now
	p := f.port(at)
	p.cut, f.ports[p.peer].cut = false, false
	f.train(p)
}

// SetRate limits both ends of a port's link to a rate, and retrains it.
func (f *Fabric) SetRate(now clock.Time, at Place, r topology.Rate) {
	f.traps.now = now
	p := f.port(at)
	for _, e := range []*port{p, &f.ports[p.peer]} {
		e.info.LinkWidthSupported, e.info.LinkSpeedSupported, e.info.LinkSpeedExtSupported, e.info.LinkSpeedExt2Supported = 0, 0, 0, 0
		e.ext = mad.ExtendedPortInfo{}
		setSupported(&e.info, &e.ext, r)
	}
	f.lose(p)
	f.train(p)
}

// Reset restarts a node: its links go down and come up, and all settings are lost.
func (f *Fabric) Reset(now clock.Time, index int) {
	f.traps.now = now
	n := &f.nodes[index]
	ports := f.ports[n.first : int(n.first)+int(n.count)+1]
	for i := range ports {
		p := &ports[i]
		rate := p.rate()
		if p.peer != noPort {
			f.lose(p)
			f.drop(p, mad.PhysicalPolling)
		}
		isSM := p.info.CapabilityMask & mad.CapIsSM
		p.reset(n, rate)
		p.info.CapabilityMask |= isSM
	}
	delete(f.samplers, int32(index))
	if n.sw != nil {
		n.sw.reset(n.sw.info.EnhancedPort0)
	}
	for i := range ports {
		f.train(&ports[i])
	}
}

// rate returns the best rate that the port supports.
func (p *port) rate() topology.Rate {
	i := p.info
	i.LinkSpeedActive, i.LinkSpeedExtActive, i.LinkSpeedExt2Active = i.LinkSpeedSupported, i.LinkSpeedExtSupported, i.LinkSpeedExt2Supported
	r := topology.Rate{Width: mad.Widest(i.LinkWidthSupported), Speed: i.ActiveSpeed()}
	if p.ext.LinkSpeedSupported != 0 {
		r.Speed = mad.SpeedFDR10
	}
	return r
}

// SetCounter sets a counter of a port by its name in PortCounters, PortRcvErrorDetails or
// PortXmitDiscardDetails. If LocalLinkIntegrityErrors or ExcessiveBufferOverrunErrors grows past the
// port's threshold, trap 129 or 130 is sent. The error is a *counterError.
func (f *Fabric) SetCounter(now clock.Time, at Place, name string, v uint64) error {
	c, ok := counterNames[name]
	if !ok {
		return &counterError{name}
	}
	f.traps.now = now
	p := f.port(at)
	was := p.all().value[c]
	p.counters.value[c], p.counters.wide[c] = v, v
	own := f.own(&f.nodes[at.Node], p)
	details := mad.TrapPort{LID: own.info.LID, Port: at.Port}.Details()
	switch {
	case c == ctrLinkIntegrity && v > was && p.info.LocalPhyErrors != 0:
		f.trap(own, mad.NoticeUrgent, mad.TrapLinkIntegrity, details)
	case c == ctrBufferOverrun && v > was && p.info.OverrunErrors != 0:
		f.trap(own, mad.NoticeUrgent, mad.TrapBufferOverrun, details)
	}
	return nil
}

// counterError says that there is no such counter.
type counterError struct{ Name string }

// Error implements error.
func (e *counterError) Error() string {
	return fmt.Sprintf("there is no counter %q; allowed: the error counters of PortCounters, PortRcvErrorDetails, PortXmitDiscardDetails and FECUncorrectableBlockCtrLane0", e.Name)
}

// FlowControlTimeout reports by trap 131 that a port's link partner did not send flow control packets in
// time.
func (f *Fabric) FlowControlTimeout(now clock.Time, at Place) {
	f.traps.now = now
	own := f.own(&f.nodes[at.Node], f.port(at))
	f.trap(own, mad.NoticeUrgent, mad.TrapFlowControl, mad.TrapPort{LID: own.info.LID, Port: at.Port}.Details())
}
