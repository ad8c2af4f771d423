package rdma

import "github.com/softvpi/softvpi/internal/wakeup"

// SetBell implements port.Sleeper.
func (f *Function) SetBell(b *wakeup.Bell) {
	f.bell, f.GSI.Bell = b, b
	f.Engine.SetBell(b)
	f.CM.SetBell(b)
}

// Rests implements port.Sleeper. A function of an InfiniBand port never does: the port's own agents are asked in its turns. Nor does one
// whose programs' owner is occupied.
func (f *Function) Rests() bool {
	return !f.held && !f.unsettled && !f.worked && f.GSI.IB == nil && f.Engine.Rests() && f.CM.Rests() && !f.GSI.Waiting() &&
		f.remote.Idle() && (f.occupied == nil || !f.occupied())
}
