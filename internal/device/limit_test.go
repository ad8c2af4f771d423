package device

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// drive drives the host once, after whoever drives it now.
func (h *Host) drive() (worked bool) {
	h.lock()
	defer h.unlockTimed()
	return h.step()
}

// TestLimitedSpeed: what a program writes by a port whose link is limited takes as long as the link's speed lets it, headers and gaps
// included, and not much longer; in virtual time, so that it does not matter how fast the machine is.
func TestLimitedSpeed(t *testing.T) {
	const size, step = 1 << 20, 2 * time.Microsecond
	for _, speed := range []uint64{10e9, 25e9, 100e9} {
		var at atomic.Int64
		sw := memlink.NewSwitch()
		var ends [2]*program
		for i := range ends {
			h := newHost(t, Config{Seed: uint64(i + 1), NoBackground: true, Now: func() clock.Time { return clock.Time(at.Load()) }})
			c := AdapterConfig{Addr: loopback.Addr(), RoceMaxFrameSize: 4096, Speed: speed, Limited: true}
			p, err := sw.Port(memlink.PortConfig{Addr: c.Addr, Notify: h.Wake})
			if err != nil {
				t.Fatal(err)
			}
			c.Link = p
			ends[i] = newProgram(t, h, h.add(t, c))
		}
		x, y := ends[0], ends[1]
		turn := func() {
			for n := 0; n < 100 && (x.host.drive() || y.host.drive()); n++ {
			}
			at.Add(int64(step))
		}
		done, ended := make(chan struct{}), make(chan struct{})
		go func() { // time passes while they connect
			defer close(ended)
			for {
				select {
				case <-done:
					return
				default:
					turn()
				}
			}
		}()
		c := connect(x.idleQP(), y.idleQP())
		close(done)
		<-ended
		src, dst := x.buffer(size), y.buffer(size)
		fill(src.b, speed)
		began := at.Load()
		wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, SGE: [ring.MaxSGE]ring.SGE{src.sge(0, size)},
			RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
		c.a.post(wr)
		for e := make([]ring.CQE, 1); c.a.cq.Poll(e) == 0; turn() {
			if time.Duration(at.Load()-began) > time.Second {
				t.Fatalf("%d bit/s: not written in a second", speed)
			}
		}
		took := time.Duration(at.Load() - began)
		least := time.Duration(float64(8*size) / float64(speed) * float64(time.Second)) // the data alone
		if most := 2*least + 50*step; took < least || took > most {
			t.Errorf("%d bit/s: %d bytes took %v, want %v to %v", speed, size, took, least, most)
		}
		if string(src.b) != string(dst.b) {
			t.Errorf("%d bit/s: other data arrived", speed)
		}
	}
}
