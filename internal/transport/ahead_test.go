package transport

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// counted is memory of another process that counts the calls to it.
type counted struct {
	owner
	reads int
}

func (c *counted) Read(dst []byte, addr uint64) error {
	c.reads++
	return c.owner.Read(dst, addr)
}

// TestReadAhead: memory of another process is read in pieces of many packets, because a call costs more than a
// packet. This holds for the requester of a write and for the responder of a read.
func TestReadAhead(t *testing.T) {
	for _, op := range []ring.WROp{ring.OpWrite, ring.OpRead} {
		t.Run(op.String(), func(t *testing.T) {
			n, a, b := newPair(t, 1, command.RC)
			connect(a, b, defaultConnection())
			source, sink := a, b
			if op == ring.OpRead {
				source, sink = b, a
			}
			from := &counted{owner: owner{base: regionAt, bytes: pattern(regionSize, 7)}}
			if _, err := source.mem.Register(memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll,
				Remote: from}); err != nil {
				t.Fatal(err)
			}
			to := make([]byte, regionSize)
			sink.region(regionAt, to, allowAll)
			a.do(op, regionSize)
			n.Run(second, nil)
			a.drain(n.Now())
			if len(a.comps) != 1 || a.comps[0].Status != ring.Success || !bytes.Equal(to, from.bytes) {
				t.Fatalf("%+v; want success, and the data", a.comps)
			}
			if packets := regionSize / int(a.q.mtu); from.reads > packets/8 {
				t.Errorf("memory was read with %d calls for %d packets, want at most one in 8", from.reads, packets)
			}
			if c := source.e.counters.CopiedPackets; c < regionSize/uint64(a.q.mtu) {
				t.Errorf("%d packets count as copied", c)
			}
		})
	}
}
