package transport

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// maxViolations limits how many wait for Violations; the counters count all.
const maxViolations = 64

// violated counts a packet with a wrong key, and records those of InfiniBand, which are reported to the
// subnet manager (IBA 10.9.4, 14.2.5.1).
func (e *Engine) violated(in *frame.In, kind link.ViolationKind) {
	v := link.Violation{Kind: kind, SLID: in.SLID, SL: in.SL}
	bth := ib.BTH(in.Data)
	switch kind {
	case link.PKeyViolation:
		e.counters.PKeyViolations++
		v.Key = uint32(bth.PKey())
	default:
		e.counters.QKeyViolations++
		v.Key = ib.DETH(in.Data[ib.BTHLen:]).QKey()
	}
	if in.SLID == 0 || len(e.violations) >= maxViolations {
		return
	}
	v.DestQP = bth.DestQP()
	v.DLID, _ = frame.AddrLID(in.Dst)
	if bth.Opcode().HasDETH() {
		v.SourceQP = ib.DETH(in.Data[ib.BTHLen:]).SrcQP()
	}
	if in.GRH != nil {
		v.SGID, v.DGID = ib.GRH(in.GRH[:]).SGID(), ib.GRH(in.GRH[:]).DGID()
	}
	e.violations = append(e.violations, v)
}

// Violations moves the InfiniBand packets that had a wrong P_Key or Q_Key out, and returns their number.
// If too many accumulate the rest are only counted.
func (e *Engine) Violations(out []link.Violation) int {
	n := copy(out, e.violations)
	e.violations = e.violations[:copy(e.violations, e.violations[n:])]
	return n
}
