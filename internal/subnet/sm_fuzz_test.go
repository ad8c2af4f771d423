package subnet

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// FuzzManager: whatever nodes answer, in whatever stage of a sweep, the manager neither crashes nor hangs. From the
// nth on every answer is overlaid with bytes of the input, and MADs that were not asked for come in between.
func FuzzManager(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, uint8(0))
	f.Add([]byte{0xff, 0xff, 3, 255, 1, 2, 3, 4, 5, 6, 7, 8}, uint8(3))
	notice := mad.Notice{IsGeneric: true, TrapNumber: mad.TrapLinkStateChange}
	f.Add(notice.Append(nil), uint8(20))
	f.Fuzz(func(t *testing.T, input []byte, from uint8) {
		b, n := smallBench(t)
		answers := 0
		for _, x := range b.nodes {
			x.lie = func(s *mad.SMP) {
				if answers++; answers < int(from) || len(input) < 2 {
					return
				}
				at := int(input[answers%len(input)]) % len(s.Data)
				copy(s.Data[at:], input)
			}
		}
		sm := b.start(n[0], Config{Sweep: time.Second, Retries: -1, MKey: 5})
		for i := range 3 {
			b.run(2 * time.Second)
			p := Packet{LID: ib.LID(i), QPN: ib.QPN(i & 1)}
			copy(p.MAD[:], input)
			p.MAD[0], p.MAD[1] = 1, []byte{mad.ClassSubnetLID, mad.ClassSubnetDir, mad.ClassSubnetAdm}[i]
			sm.Receive(b.now, &p)
			sm.Failed(b.now, &p)
		}
		b.run(2 * time.Second)
	})
}
