package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestReceiveMemoryIsCheckedWhereBytesLand: elements of a receive that may not be written to fail the message whose
// bytes reach them, and no other (adapters check an L_Key when they access what it names, IBA 10.6.4).
func TestReceiveMemoryIsCheckedWhereBytesLand(t *testing.T) {
	for _, c := range []struct {
		name         string
		op           ring.WROp
		size         uint32
		status, recv ring.Status
	}{
		{"empty message", ring.OpSend, 0, ring.Success, ring.Success},
		{"message that ends before", ring.OpSend, 50, ring.Success, ring.Success},
		{"message that reaches it", ring.OpSend, 51, ring.RemoteOperation, ring.LocalProtection},
		{"write with immediate data", ring.OpWriteImm, 60, ring.Success, ring.Success},
	} {
		for _, local := range []bool{false, true} {
			name := c.name + ", on the wire"
			if local {
				name = c.name + ", on the local path"
			}
			t.Run(name, func(t *testing.T) {
				n, a, b := newPair(t, 1, command.RC)
				connect(a, b, defaultConnection())
				src, dst := a.region(regionAt, pattern(100, 1), allowAll), b.region(regionAt, make([]byte, 100), allowAll)
				if local {
					if err := a.e.Join(0, a.q, b.q); err != nil {
						t.Fatal(err)
					}
				}
				good, bad := ring.SGE{Addr: regionAt, Length: 50, LKey: dst.Key}, ring.SGE{Addr: 0x999, Length: 50}
				b.postRecv(ring.RecvWR{ID: 9, NumSGE: 2, SGE: [ring.MaxSGE]ring.SGE{good, bad}})
				a.post(ring.SendWR{Op: c.op, Flags: ring.Signaled, NumSGE: 1, SGE: a.sges(regionAt, int(c.size), src.Key),
					RemoteAddr: regionAt, RKey: dst.Key})
				n.Run(n.Now()+second, func() bool { return len(a.comps) > 0 && len(b.comps) > 0 })
				if len(a.comps) != 1 || a.comps[0].Status != c.status {
					t.Errorf("sender: completions %+v, want %v", a.comps, c.status)
				}
				if len(b.comps) != 1 || b.comps[0].Status != c.recv || c.recv == ring.Success && b.comps[0].ByteLen != c.size {
					t.Errorf("receiver: completions %+v, want %v with %d bytes", b.comps, c.recv, c.size)
				}
			})
		}
	}
}
