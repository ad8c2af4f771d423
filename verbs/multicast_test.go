package verbs_test

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// TestBlockSelf: a UD QP gets what it sends to a group that it is attached to, unless it was created with BlockSelf; what
// others send it gets in any case.
func TestBlockSelf(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		own := b.Addrs[0].As4() // nobody else's, so that no other process sends to the group
		group := netip.AddrFrom4([4]byte{239, own[1], own[2], own[3]})
		for _, block := range []bool{false, true} {
			server, client := newSide(t, b, 0, verbs.UD), newSide(t, b, 1, verbs.UD)
			ok(t, server.qp.Close())
			server.qp = must(server.pd.CreateQP(verbs.QPConfig{
				Type: verbs.UD, SendCQ: server.cq, RecvCQ: server.cq, SendDepth: 4, RecvDepth: 4, Context: 77, BlockSelf: block,
			}))(t)
			server.ready(t, 0x1234)
			client.ready(t, 0x1234)
			ok(t, server.qp.JoinMulticast(group))
			for range 2 {
				server.recv(t, 1, server.mr.SGE(0, 4096+grh))
			}
			for _, s := range []*side{server, client} {
				ah := must(s.pd.CreateAH(verbs.AddressVector{Addr: group}))(t)
				defer ah.Close()
				s.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{s.mr.SGE(0, 8)}, AH: ah, RemoteQPN: 0xffffff, RemoteQKey: 0x1234})
				if s == client {
					s.want(t, verbs.CompletedSend, verbs.Success)
				}
			}
			var from []uint32
			for sent := false; !sent || len(from) == 0 || from[len(from)-1] != client.qp.Number(); {
				if wc := server.next(t); wc.Op == verbs.CompletedRecv {
					from = append(from, wc.SrcQP)
				} else {
					sent = true
				}
			}
			if self := from[0] == server.qp.Number(); self == block || len(from) > 2 {
				t.Errorf("block %v: datagrams from %#x, its own number is %#x", block, from, server.qp.Number())
			}
		}
		cq := must(b.Device(t, 0).CreateCQ(4))(t)
		defer cq.Close()
		pd := must(b.Device(t, 0).AllocPD())(t)
		defer pd.Close()
		_, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, BlockSelf: true})
		wantErr(t, err, verbs.ErrInvalid)
	})
}
