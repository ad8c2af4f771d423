package subnet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

type administration struct{ sm *SM }

func (a *administration) init(s *SM)                       { a.sm = s }
func (a *administration) advance()                         {}
func (a *administration) failed(p *Packet)                 {}
func (a *administration) deadline() clock.Time             { return clock.Never }
func (a *administration) receive(p *Packet, h *mad.Header) {}
func (a *administration) changed(old, now *Subnet)         {}
func (a *administration) forward(n *mad.Notice)            {}
func (a *administration) receivers() map[ib.LID][]receiver { return nil }
