package transport

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

var attackTable = flag.Bool("attacktable", false, "print what TestForgedCost measures for more cases and packets, and hold it to nothing")

// forgedAt is the address of the memory that forged packets write to, and no other.
const forgedAt = 0x4000000

// attacked is a stream of writes, and an attacker who knows everything but the PSN: the queue pair's number, the
// requester's address and port, and a key of the responder's memory.
type attacked struct {
	loss   float64       // of the stream
	every  time.Duration // between two forged packets
	writes int           // in progress
	pause  time.Duration // of the requester's program before each further write
	exact  bool          // the responder keeps no packet that comes ahead of its turn
}

// victim is the two ends of an attacked stream.
type victim struct {
	attacked
	n    *sim.Network
	a, b *end
	free int // writes that wait for the program
	key  uint32
	mem  []byte // at forgedAt
	rng  *rand.Rand
}

func (c attacked) start(t testing.TB, seed uint64, forged int) *victim {
	const size = 512
	v := &victim{attacked: c, n: sim.New(seed), mem: make([]byte, forged*4), rng: rand.New(rand.NewPCG(seed, 1))}
	v.n.Default.Delay, v.n.Default.Loss = 10*time.Microsecond, c.loss
	ha, hb := newHost(t, v.n, "10.0.0.1", Config{}), newHost(t, v.n, "10.0.0.2", Config{FirstQPN: 0x1000})
	hb.port.Service = time.Microsecond
	if c.exact {
		hb.e.kept.used = maxEarly
	}
	v.a, v.b = ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{})
	v.a.region(regionAt, pattern(size, 3), allowAll)
	v.b.region(regionAt, make([]byte, size), allowAll)
	v.key = hb.region(forgedAt, v.mem, allowAll).Key
	conn := defaultConnection()
	conn.timeout = 14
	connect(v.a, v.b, conn)
	ha.settle = func(clock.Time) {
		for _, e := range ha.comps {
			if e.Status != ring.Success {
				t.Fatalf("%+v: a genuine write failed: %+v", c, e)
			}
			if c.pause > 0 {
				v.free++
			} else {
				v.post()
			}
		}
		ha.comps = ha.comps[:0]
	}
	for range c.writes {
		v.post()
	}
	v.n.Pass(time.Millisecond)
	return v
}

func (v *victim) post() { v.a.doWith(ring.OpWrite, 512, func(*ring.SendWR) {}) }

// write forges a write of its own word, number k.
func (v *victim) write(k int, psn ib.PSN) []byte {
	p := make([]byte, ib.BTHLen+ib.RETHLen+4)
	ib.BTH(p[:ib.BTHLen]).Encode(ib.RCWriteOnly, false, false, 0, ib.PKeyDefault, ib.QPN(v.b.q.num), psn)
	ib.RETH(p[ib.BTHLen:]).Encode(forgedAt+uint64(k*4), v.key, 4)
	p[len(p)-1] = 1
	return p
}

// inject delivers a forged packet, and lets the stream go on until the next one.
func (v *victim) inject(p []byte) {
	v.n.Inject(v.b.port, netip.AddrPortFrom(v.a.addr, pairPort), v.n.Now(), p)
	if v.free > 0 && v.rng.Float64()*float64(v.pause) < float64(v.every) {
		v.post()
		v.free--
		v.a.port.Wake()
	}
	v.n.Pass(v.every)
}

// TestSweep sweeps over all PSNs in steps of what a responder keeps, several times: no forged packet is carried out,
// and none of those that would end the connection does.
func TestSweep(t *testing.T) {
	const step, rounds = reorderSpan - 1, 6
	per := (1<<24 + step - 1) / step
	for _, c := range []attacked{
		{every: time.Microsecond, writes: 32},
		{every: 5 * time.Microsecond, writes: 1},
		{every: time.Microsecond, writes: 4, pause: 100 * time.Microsecond},
	} {
		v := c.start(t, 1, per)
		for round := range rounds {
			from := v.rng.Uint32()
			for k := range per {
				p := v.write(k, ib.PSN(from+uint32(k*step))&ib.PSNMask)
				if round%3 == 2 {
					p[0] = byte(ib.RCWriteMiddle) // of no message: it would end the queue pair
				}
				v.inject(p)
			}
		}
		if at := bytes.IndexByte(v.mem, 1); at >= 0 {
			t.Errorf("%+v: a forged write was carried out", c)
		}
		if v.b.q.state != command.RTS || v.a.q.state != command.RTS {
			t.Errorf("%+v: the queue pairs are in state %s and %s", c, stateName(v.a.q.state), stateName(v.b.q.state))
		}
	}
}

// TestForgedCost: what is kept ahead of a missing packet does not make it cheaper to have a forged packet carried out.
// The attacker knows where the stream is, but for 12 bits of the PSN (14 for the table). Hits at the expected PSN there
// are at any responder; those on other packets must not be more, without loss or with it.
func TestForgedCost(t *testing.T) {
	const us = time.Microsecond
	packets, reach, losses := 1<<14, 1<<11, []float64{0, 0.01}
	if *attackTable {
		packets, reach, losses = 1<<18, 1<<13, []float64{0, 0.001, 0.01, 0.03}
	}
	direct, other := 0, 0
	for _, loss := range losses {
		for _, c := range []attacked{
			{every: us, writes: 16}, {every: us, writes: 128}, {every: 10 * us, writes: 128}, {every: us, writes: 1},
			{every: us, writes: 4, pause: 100 * us},
		} {
			c.loss = loss
			v := c.start(t, 1, packets)
			hit := map[int]bool{}
			for k := range packets {
				d := v.rng.IntN(2*reach) - reach
				hit[k] = d == 0
				v.inject(v.write(k, v.b.q.resp.psn.Add(uint32(d)&ib.PSNMask)))
			}
			n, m := 0, 0
			for k := range packets {
				switch {
				case v.mem[k*4] == 0 && v.mem[k*4+3] == 0:
				case hit[k]:
					n++
				default:
					m++
				}
			}
			t.Logf("%+v: of %d forged packets %d hit the expected PSN, %d others were carried out", c, packets, n, m)
			direct, other = direct+n, other+m
		}
	}
	if other > direct && !*attackTable {
		t.Errorf("%d forged packets were carried out at the expected PSN, and %d others", direct, other)
	}
}

// kept delivers writes of single words to a responder by hand.
type kept struct {
	t    *testing.T
	ha   *host
	b    *end
	key  uint32
	mem  []byte
	next ib.PSN
}

func newKept(t *testing.T) *kept {
	k := &kept{t: t, ha: newHost(t, nil, "10.0.0.1", Config{}), mem: make([]byte, 8192)}
	hb := newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x1000})
	k.key = hb.region(regionAt, k.mem, allowAll).Key
	a, b := k.ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{})
	c := defaultConnection()
	connect(a, b, c)
	k.b, k.next = b, ib.PSN(c.psn[0])
	return k
}

// write delivers the write that is ahead packets behind the expected first one, to a word of its own.
func (k *kept) write(ahead int, value byte) {
	b := writeOnly(k.b, k.next.Add(uint32(ahead)), k.key)
	ib.RETH(b[ib.BTHLen:]).Encode(regionAt+uint64(4*ahead), k.key, 4)
	b[len(b)-1] = value
	k.b.e.Receive(k.b.e.now+1, []frame.In{{Data: b, Src: k.ha.addr, Dst: k.b.addr, SrcPort: pairPort}})
}

// wants checks how many packets have been carried out, and their values.
func (k *kept) wants(what string, values string) {
	k.t.Helper()
	if n := k.b.q.resp.psn.Diff(k.next); int(n) != len(values) {
		k.t.Errorf("%s: %d packets were carried out, want %d", what, n, len(values))
	}
	for i := range values {
		if v := k.mem[4*i+3]; v != values[i] {
			k.t.Errorf("%s: the value of packet %d is %c, want %c", what, i, v, values[i])
		}
	}
}

// TestInOrderWins: whatever is kept for a PSN, the packet that arrives at its turn is carried out, and a difference is
// counted. Nothing that is kept is carried out while packets arrive in order.
func TestInOrderWins(t *testing.T) {
	for ahead := 1; ahead < reorderSpan; ahead++ {
		k := newKept(t)
		k.write(ahead, 'x')
		want := make([]byte, ahead+2)
		for i := range want {
			k.write(i, 'g')
			want[i] = 'g'
		}
		k.wants("after a forged packet", string(want))
		if n, most := k.b.e.counters.ConflictingPackets, uint64(1); n > most || ahead <= earlyReach && n != most {
			t.Errorf("%d ahead: %d packets count as conflicting, want %d", ahead, n, most)
		}
		if t.Failed() {
			return
		}
	}
}

// TestKeptPackets: kept packets are carried out when the missing one has come, and a packet directly behind it shows
// that they were sent.
func TestKeptPackets(t *testing.T) {
	k := newKept(t)
	k.write(1, 'b')
	k.write(2, 'c')
	k.write(0, 'a')
	k.wants("after the missing packet", "a")
	k.write(2, 'c')
	k.wants("after the last one again", "abc")

	k = newKept(t)
	k.write(1, 'b')
	k.write(0, 'a')
	k.write(2, 'c')
	k.wants("with a new one behind", "abc")

	k = newKept(t)
	k.write(0, 'a')
	k.write(2, 'c')
	k.write(3, 'd')
	k.write(1, 'b')
	k.write(0, 'a') // a repetition of another packet than the last one
	k.write(3, 'd')
	k.wants("with something between", "ab")
	k.write(1, 'b')
	k.write(3, 'd')
	k.wants("after a repetition of both", "abcd")
}

// TestDifferentPackets: if two packets differ that arrive early for one PSN, neither is carried out.
func TestDifferentPackets(t *testing.T) {
	for _, order := range []string{"gx", "xg"} {
		k := newKept(t)
		for i := range order {
			k.write(1, order[i])
		}
		k.write(2, 'c')
		k.write(0, 'a')
		k.write(2, 'c')
		k.wants("after "+order, "a")
		if n := k.b.e.counters.ConflictingPackets; n != 1 {
			t.Errorf("%d packets count as conflicting, want 1", n)
		}
		k.write(1, 'b')
		k.write(2, 'c')
		k.wants("after the genuine one", "abc")
	}
	// One that arrived after its successor may have been sent in its place.
	k := newKept(t)
	k.write(2, 'c')
	k.write(1, 'x')
	k.write(0, 'a')
	k.write(2, 'c')
	k.wants("after a late one", "a")
}

// TestKeptExpire: a packet that was kept too long ago is not carried out.
func TestKeptExpire(t *testing.T) {
	k := newKept(t)
	k.write(1, 'x')
	k.b.e.now += clock.Time(earlyLife) + 1
	k.write(0, 'a')
	k.write(2, 'c')
	k.wants("after a long time", "a")
}
