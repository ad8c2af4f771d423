package device

// Most of a port's functions have nothing to do in most turns, and there may be over a hundred. The port says which of them its turns ask
// (port.Sleeper), and portLoop follows: awake are those adapters whose RDMA functions are asked. An adapter that has something to do beside
// its function is occupied, and wakes its station when that begins.

// audit looks in each turn whether an adapter sleeps that should not, in tests; nil: nobody does.
var audit func(*portLoop)

// relist finds anew which adapters have links of their own, which a turn asks, and how they want to be polled, after one has come or gone.
func (p *portLoop) relist() {
	p.owners = p.owners[:0]
	for _, a := range p.functions {
		if a.drivesLinks() {
			p.owners = append(p.owners, a)
		}
	}
	p.listAwake()
	p.listPolling()
}

// listAwake finds the adapters anew that a turn asks. The list may grow while a loop by index goes through it; such a loop may come by an
// adapter twice then, but misses none.
func (p *portLoop) listAwake() {
	p.awake = p.awake[:0]
	for _, a := range p.functions {
		if a.station == nil || !a.station.Asleep() {
			p.awake = append(p.awake, a)
		}
	}
}

// drivesLinks reports whether the adapter has a link that no other drives.
func (a *adapter) drivesLinks() bool {
	for _, o := range a.links.All() {
		if !o.Shared() {
			return true
		}
	}
	return false
}

// occupied reports whether the adapter has something to do in the port's turns beside its function.
func (a *adapter) occupied() bool {
	return len(a.gathering) > 0 || len(a.joining) > 0
}

// followStation follows the adapter's station.
func (a *adapter) followStation(asleep bool) {
	if asleep {
		a.function.Drive(nil) // that of no program: the one whose turn it was will be told of in its next turn
	}
	a.port.listAwake()
}
