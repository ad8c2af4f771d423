package link

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

// TestQuote: the packet quoted in an ICMP error is identified by its QP, and a MAD by its first bytes. A quotation
// that is too short identifies nothing.
func TestQuote(t *testing.T) {
	mad := bytes.Repeat([]byte{7}, 256)
	packet := make([]byte, ib.BTHLen+ib.DETHLen)
	ib.BTH(packet).Encode(ib.UDSendOnly, false, false, 0, ib.PKeyDefault, ib.QPGSI, 5)
	data := make([]byte, ib.BTHLen+ib.DETHLen+64)
	ib.BTH(data).Encode(ib.RCSendOnly, false, false, 0, ib.PKeyDefault, 0x2a, 5)
	whole := append(bytes.Clone(packet), mad...)
	for _, c := range []struct {
		name          string
		head, payload []byte
		qpn           uint32
		named         bool
	}{
		{"MAD apart", packet, mad, 1, true},
		{"MAD in one piece", whole, nil, 1, true},
		{"MAD in two pieces", whole[:30], whole[30:], 1, true},
		{"as much as needed", whole[:ib.BTHLen+ib.DETHLen+QuotedMAD], nil, 1, true},
		{"a byte too short", whole[:ib.BTHLen+ib.DETHLen+QuotedMAD-1], nil, 1, false},
		{"only the BTH", whole[:ib.BTHLen], nil, 1, false},
		{"part of the BTH", whole[:ib.BTHLen-1], nil, 0, false},
		{"nothing", nil, nil, 0, false},
		{"another QP", data, nil, 0x2a, false},
	} {
		var u Unreachable
		u.Quote(c.head, c.payload)
		if named := u.MAD == [QuotedMAD]byte(mad[:QuotedMAD]); u.QPN != c.qpn || named != c.named || !named && u.MAD != [QuotedMAD]byte{} {
			t.Errorf("%s: quoted as QP %d, MAD %v", c.name, u.QPN, u.MAD)
		}
	}
}
