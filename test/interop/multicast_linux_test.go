package interop

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

const multicastQPN = 0xffffff // IBA 10.5.2

// testMulticast sends datagrams to a group, each way, with mckey of rdma-core as the peer.
func testMulticast(t *testing.T, g *guest) {
	const messages = "3"
	f := families[0]
	group := netip.MustParseAddr("239.1.2.3")
	mckey := []string{"mckey", "-m", group.String(), "-b", f.theirs.String(), "-C", messages}
	t.Run("receive", func(t *testing.T) {
		a := newAdapter(t, f.ours)
		e := a.end(verbs.UD)
		e.ready(udpQKey)
		for i := range 3 {
			e.recv(uint64(i), a.mr.SGE(i*4096, 4096))
		}
		ok(t, e.qp.JoinMulticast(group))
		r := g.program(t, append(mckey, "-s")...)
		for range 3 {
			w := e.next(verbs.Success)
			if w.Flags&verbs.WithGRH == 0 {
				t.Errorf("datagram arrives as %+v", w)
			}
			wantAddrs(t, a.mr.Bytes()[w.ID*4096:][:grh], f.theirs.AsSlice(), group.AsSlice())
		}
		r.succeeds(t, await.Limit)
		ok(t, e.qp.LeaveMulticast(group))
		e.drop()
	})
	t.Run("send", func(t *testing.T) {
		a := newAdapter(t, f.ours)
		e := a.end(verbs.UD)
		e.ready(udpQKey)
		ah, err := a.pd.CreateAH(verbs.AddressVector{Addr: group})
		ok(t, err)
		r := g.program(t, mckey...)
		g.sh(t, `until [[ $(</proc/net/igmp) == *030201EF* ]]; do sleep 0.05; done`)
		// The guest's port may be in the group before the program's queue pair is, which gets nothing until then.
		await.Eventually(t, "mckey has got three", func() bool {
			e.send(verbs.SendWR{Op: verbs.OpSendImm, Imm: e.qp.Number(), AH: ah, RemoteQPN: multicastQPN, RemoteQKey: udpQKey,
				SGE: []verbs.SGE{a.mr.SGE(0, 100)}})
			e.next(verbs.Success)
			select {
			case <-r.Done():
				return true
			default:
				return false
			}
		})
		r.succeeds(t, await.Limit)
		e.drop()
	})
}
