package driver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// ofDSCP makes a frame one of IPv4 without a tag, of a protocol for experiments (RFC 3692).
func ofDSCP(f []byte, dscp uint8) []byte {
	f[12], f[13] = 8, 0
	ip := f[eth.EthernetLen:]
	copy(ip, []byte{0x45, dscp << 2, 0, byte(len(ip)), 0, 1, 0, 0, 64, 253, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2})
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	eth.IPv4(ip).SetChecksum()
	return f
}

// wireTally is what the other end of an adapter's wire has read, by the priority that frames name.
type wireTally struct {
	by     qos.Classifier
	mu     sync.Mutex
	frames [port.Untagged + 1]port.Tally
	pauses [8]uint64 // those that pause, not those that resume
}

func (w *wireTally) add(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, err := eth.ParsePause(b); err == nil {
		for p, quanta := range f.Quanta {
			if f.Enabled>>p&1 != 0 && quanta != 0 {
				w.pauses[p]++
			}
		}
		return
	}
	if bytes.Equal(b[12:14], []byte{8, 6}) {
		return // the adapter's own, by ARP
	}
	at, named := w.by.Frame(b)
	if !named {
		at = port.Untagged
	}
	w.frames[at].Packets++
	w.frames[at].Bytes += uint64(len(b))
}

func (w *wireTally) read(priority uint8) (frames port.Tally, pauses uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frames[priority], w.pauses[priority%8]
}

// reads has a goroutine read all that comes to a guest until the test ends.
func (g *guest) reads(t *testing.T, took func([]byte)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 70000)
		for {
			n, err := g.Read(b)
			if err != nil {
				return
			}
			took(b[:n])
		}
	}()
	t.Cleanup(func() { g.Close(); <-done })
}

// instance returns the counters of a priority by their printed names, each rate with what it makes over the reader's interval.
func (p *pausing) instance(t *testing.T, r *counters.Reader, last *counters.Snapshot, name string) map[string]float64 {
	t.Helper()
	s, err := p.counters.Snapshot(fmt.Sprintf(`\adapter_qos(port, %s)\*`, name))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, v := range r.Read(s) {
		got[v.Counter] = float64(v.Value.Integer)
		if v.Value.Known && !v.Value.Whole {
			got[v.Counter] = math.Round(v.Value.Real * (s.Uptime - last.Uptime).Seconds())
		}
	}
	*last = s
	return got
}

// TestPriorityCounters_Traffic: frames, pauses and losses of a priority move each of the manual's 17 counters of it by what was sent,
// whether frames have their priority by their tag or by the class of their DSCP, and those of no other priority (WinOF 5.50, 4.9.4.3).
func TestPriorityCounters_Traffic(t *testing.T) {
	const tags, dscps = "1", "2" // of RxTrustedState
	for name, trusted := range map[string]string{"by tag": tags, "by DSCP": dscps} {
		t.Run(name, func(t *testing.T) {
			p := newPausing(t, "mlx5", map[string]string{"RxTrustedState": trusted, "TCHeadOfQueueLifeTimeLimitEnable": "2",
				"TCHeadOfQueueLifeTimeLimit": "8", "TCStallCount": "3"})
			if err := p.SetQoS(api.QoSRequest{Adapter: "port", Settings: []string{"pfc=3", "prio-tc=3:1", "tc-bw=0:50,1:50"}}); err != nil {
				t.Fatal(err)
			}
			of := func(g *guest, to eth.MAC, priority, n int) []byte {
				f := long(g.frame(to, "x"), n)
				if trusted == dscps {
					return ofDSCP(f, uint8(priority*8+n%8)) // each DSCP of the class
				}
				return tagged(f, uint16(priority)<<13)
			}
			var sent, arrives [port.Untagged + 1]port.Tally // by the guest, and to the adapter
			put := func(g *guest, to eth.MAC, tally *[port.Untagged + 1]port.Tally, priority, n int) {
				f := g.frame(to, "x")
				if priority != port.Untagged {
					f = of(g, to, priority, n)
				}
				g.send(t, f)
				tally[priority].Packets++
				tally[priority].Bytes += uint64(len(f))
			}
			wire := &wireTally{by: qos.Classifier{ByDSCP: trusted == dscps}}
			p.wire.drain(t)
			p.wire.reads(t, wire.add)
			var readers [3]counters.Reader
			var last [3]counters.Snapshot
			instances := [3]string{"Priority 3", "Priority 5", "Untagged"}
			before := [3]map[string]float64{}
			for i := range instances {
				before[i] = p.instance(t, &readers[i], &last[i], instances[i])
			}

			// The guest takes nothing, and the adapter asks its peer for silence.
			begin := time.Now()
			await.Eventually(t, "a pause of priority 3 comes", func() bool {
				for i := range 64 {
					put(p.wire, p.guest.mac, &arrives, 3, 100+i)
				}
				_, pauses := wire.read(3)
				return pauses > 0
			})
			asked := time.Now()
			put(p.wire, p.guest.mac, &arrives, 5, 300)
			put(p.wire, p.guest.mac, &arrives, port.Untagged, 60)
			held := time.Since(asked)
			p.guest.reads(t, func([]byte) {})
			await.Eventually(t, "the peer may go on", func() bool { return p.flow().Pausing == "none" })

			// One pause of known length, and then such that what the guest sends is lost while it waits for their end.
			pause := func(quanta uint16) {
				p.wire.send(t, (&eth.Pause{PerPriority: true, Enabled: 1 << 3, Quanta: [8]uint16{3: quanta}}).Append(nil))
			}
			pause(1000)
			length := eth.PauseTime(1000, 10_000_000_000)
			await.Eventually(t, "the pause is over", func() bool { return p.counted().Priority[3].ReceivedTime == length })
			pauses := uint64(1)
			await.Eventually(t, "frames are lost instead of sent", func() bool {
				pause(0xffff)
				pauses++
				for i := range 16 {
					put(p.guest, p.wire.mac, &sent, 3, 200+i)
				}
				put(p.guest, p.wire.mac, &sent, 5, 400)
				put(p.guest, p.wire.mac, &sent, port.Untagged, 60)
				return p.counted().Discards[3] > 0
			})
			longest := time.Duration(pauses) * eth.PauseTime(0xffff, 10_000_000_000)

			// Whatever was not lost has left in the end.
			await.Eventually(t, "all that the guest has sent has left, or was lost", func() bool {
				for _, at := range []uint8{3, 5, port.Untagged} {
					got, _ := wire.read(at)
					if c := p.counted(); at < port.Untagged {
						got.Packets += c.Discards[at]
					}
					if got.Packets < sent[at].Packets {
						return false
					}
				}
				_, told := wire.read(3)
				return p.counted().Control >= pauses && p.flow().Pausing == "none" && p.counted().Priority[3].Sent == told
			})
			ended := time.Since(begin)
			var left [3]port.Tally
			for i, at := range []uint8{3, 5, port.Untagged} {
				left[i], _ = wire.read(at)
			}
			_, signalled := wire.read(3)
			for i, at := range []uint8{3, 5, port.Untagged} {
				got := p.instance(t, &readers[i], &last[i], instances[i])
				in, out := arrives[at], left[i]
				want := map[string]uint64{
					"Bytes Received": in.Bytes, "Bytes Received/Sec": in.Bytes, "Packets Received": in.Packets, "Packets Received/Sec": in.Packets,
					"Bytes Sent": out.Bytes, "Bytes Sent/Sec": out.Bytes, "Packets Sent": out.Packets, "Packets Sent/Sec": out.Packets,
					"Bytes Total": in.Bytes + out.Bytes, "Bytes Total/Sec": in.Bytes + out.Bytes, "Packets Total": in.Packets + out.Packets,
					"Packets Total/Sec": in.Packets + out.Packets, "Sent Pause Frames": 0, "Received Pause Frames": 0, "Sent Pause Duration": 0,
					"Received Pause Duration": 0, "Sent Discard Frames": 0,
				}
				if at == 3 {
					want["Sent Pause Frames"], want["Received Pause Frames"] = signalled, pauses
					want["Sent Discard Frames"] = sent[3].Packets - out.Packets
					for counter, limits := range map[string][2]time.Duration{"Sent Pause Duration": {held, ended}, "Received Pause Duration": {length, longest}} {
						us := got[counter] - before[i][counter]
						if us < float64(limits[0].Microseconds()) || us > float64(limits[1].Microseconds()+1) || us == 0 {
							t.Errorf("%s: %v us, want one from %v to %v", counter, us, limits[0], limits[1])
						}
						delete(want, counter)
					}
				}
				for counter, n := range want {
					grew := got[counter] - before[i][counter]
					if grew != float64(n) && (at != port.Untagged || grew < float64(n)) { // of which the adapter may send some of its own
						t.Errorf("%s, %s: %v, want %d", instances[i], counter, grew, n)
					}
				}
			}
		})
	}
}
