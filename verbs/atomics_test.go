package verbs_test

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// TestRefusedAtomics: an atomic without the rights, with keys that are none, or at an odd address, is refused with the status that
// says why (IBA 9.7.4.1, 11.6.2), and changes nothing at the peer.
func TestRefusedAtomics(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong func(t *testing.T, server *side, wr *verbs.SendWR)
		want  verbs.Status
	}{
		{"right of the region", func(t *testing.T, server *side, wr *verbs.SendWR) {
			weak := must(server.pd.Register(server.mr.Bytes(), verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead))(t)
			t.Cleanup(func() { ok(t, weak.Deregister()) })
			wr.RKey = weak.RKey()
		}, verbs.RemoteAccess},
		{"right of the queue pair", func(t *testing.T, server *side, _ *verbs.SendWR) {
			ok(t, server.qp.Modify(verbs.QPAttr{Access: verbs.RemoteWrite | verbs.RemoteRead}, verbs.MaskAccess))
		}, verbs.RemoteInvalidRequest},
		{"alignment", func(_ *testing.T, _ *side, wr *verbs.SendWR) { wr.RemoteAddr++ }, verbs.RemoteInvalidRequest},
		{"remote key", func(_ *testing.T, _ *side, wr *verbs.SendWR) { wr.RKey++ }, verbs.RemoteAccess},
		{"local key", func(_ *testing.T, _ *side, wr *verbs.SendWR) { wr.SGE[0].LKey++ }, verbs.LocalProtection},
		{"local length", func(_ *testing.T, _ *side, wr *verbs.SendWR) { wr.SGE[0].Length = 4 }, verbs.LocalLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
				for op, done := range map[verbs.Opcode]verbs.CompletionOp{
					verbs.OpFetchAdd: verbs.CompletedFetchAdd, verbs.OpCompareSwap: verbs.CompletedCompareSwap,
				} {
					server, client := connected(t, b)
					copy(server.mr.Bytes(), bytes.Repeat([]byte{3}, 16))
					wr := verbs.SendWR{Op: op, SGE: []verbs.SGE{client.mr.SGE(0, 8)}, RemoteAddr: server.mr.RemoteAddr(),
						RKey: server.mr.RKey(), Add: 1, Compare: 0x0303030303030303}
					c.wrong(t, server, &wr)
					client.send(t, wr)
					client.want(t, done, c.want)
					if !bytes.Equal(server.mr.Bytes()[:16], bytes.Repeat([]byte{3}, 16)) {
						t.Errorf("%v was carried out: %x", op, server.mr.Bytes()[:16])
					}
				}
			})
		})
	}
}
