package fabric

import "github.com/softvpi/softvpi/wire/mad"

// classCongestion is the management class of congestion control (IBA annex A10).
const classCongestion = 0x21

// congestion is the congestion control agent. No node marks packets or slows down for marks, so it has no attribute: it says
// that, instead of leaving those who ask to wait. Everything other than Get and Set is left to a program at the port.
func congestion(b *[mad.Len]byte) bool {
	if method := b[3]; method != mad.MethodGet && method != mad.MethodSet {
		return false
	}
	if b[0] != mad.BaseVersion {
		return answer(b, mad.StatusBadVersion)
	}
	return answer(b, mad.StatusAttributeUnsupported)
}
