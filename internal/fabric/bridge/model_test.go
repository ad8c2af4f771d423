package bridge

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// model is a switch that does everything in the simplest way: it knows by lists, and its queues have no bounds.
type model struct {
	ageing  time.Duration
	entries int
	ports   []PortConfig
	heard   []modelEntry
	waiting [][][]byte
}

type modelEntry struct {
	vlan uint16
	mac  eth.MAC
	port int
	seen clock.Time
}

func (m *model) in(port int, vlan uint16) bool {
	c := &m.ports[port]
	return vlan != 0 && (vlan == c.PVID || c.Tagged.Has(vlan))
}

func (m *model) receive(now clock.Time, port int, f []byte) {
	m.heard = slices.DeleteFunc(m.heard, func(e modelEntry) bool { return now.Sub(e.seen) >= m.ageing })
	dst, src := eth.MAC(f), eth.MAC(f[6:])
	rest, tci := f[12:], uint16(0)
	if binary.BigEndian.Uint16(rest) == 0x8100 {
		tci, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	vlan := tci & 0xfff
	if vlan == 0 {
		vlan = m.ports[port].PVID
	}
	if src[0]&1 != 0 || !m.in(port, vlan) {
		return
	}
	m.learn(modelEntry{vlan, src, port, now})
	if bytes.HasPrefix(dst[:], []byte{1, 0x80, 0xc2, 0, 0}) && dst[5] < 16 {
		return
	}
	at := slices.IndexFunc(m.heard, func(e modelEntry) bool { return e.vlan == vlan && e.mac == dst })
	for to := range m.ports {
		if to == port || !m.in(to, vlan) || at >= 0 && m.heard[at].port != to {
			continue
		}
		out := slices.Clone(f[:12])
		if vlan != m.ports[to].PVID {
			out = binary.BigEndian.AppendUint16(append(out, 0x81, 0), tci&0xf000|vlan)
		}
		if out = append(out, rest...); len(rest)-2 <= m.ports[to].MTU {
			m.waiting[to] = append(m.waiting[to], out)
		}
	}
}

func (m *model) learn(n modelEntry) {
	i := slices.IndexFunc(m.heard, func(e modelEntry) bool { return e.vlan == n.vlan && e.mac == n.mac })
	if i >= 0 {
		same := m.heard[i].port == n.port
		m.heard = slices.Delete(m.heard, i, i+1)
		if same {
			m.heard = append(m.heard, n)
			return
		}
	}
	known := 0
	for _, e := range m.heard {
		if e.port == n.port {
			known++
		}
	}
	if known < m.entries {
		m.heard = append(m.heard, n)
	}
}

// TestBridge_Model: whatever frames arrive, in whatever VLANs, each port sends what a switch sends that does everything in the
// simplest way, in the same order, and the same sources are known.
func TestBridge_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{ageing: 5 * time.Second, entries: rapid.IntRange(1, 6).Draw(t, "entries")}
		b, err := New(Config{Ageing: m.ageing, Entries: m.entries})
		if err != nil {
			t.Fatal(err)
		}
		var ports []*Port
		for range rapid.IntRange(2, 5).Draw(t, "ports") {
			c := PortConfig{MTU: rapid.SampledFrom([]int{576, 1500}).Draw(t, "mtu"), PVID: uint16(rapid.IntRange(0, 3).Draw(t, "pvid"))}
			for id := uint16(1); id <= 3; id++ {
				if rapid.Bool().Draw(t, "tagged") {
					c.Tagged.Add(id)
				}
			}
			if c.PVID == 0 && c.Tagged.Len() == 0 {
				c.PVID = 1
			}
			p, err := b.Add(c)
			if err != nil {
				t.Fatal(err)
			}
			ports, m.ports, m.waiting = append(ports, p), append(m.ports, c), append(m.waiting, nil)
		}
		now := clock.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "frames") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			f := drawFrame(t)
			port := rapid.IntRange(0, len(ports)-1).Draw(t, "port")
			cut := rapid.IntRange(eth.EthernetLen, len(f)).Draw(t, "cut")
			ports[port].Receive(now, &Frame{Pieces: [3][]byte{f[:cut], f[cut:]}})
			m.receive(now, port, f)
			for to, p := range ports {
				compare(t, to, p, &m.waiting[to])
			}
		}
		same(t, b.Table(now), m.heard, now, m.ageing)
	})
}

func drawFrame(t *rapid.T) []byte {
	dst := rapid.SampledFrom([]eth.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 3}, eth.Broadcast, {1, 0, 0x5e, 0, 0, 9},
		{1, 0x80, 0xc2, 0, 0, 0xe}}).Draw(t, "dst")
	src := eth.MAC{2, 0, 0, 0, 0, byte(rapid.IntRange(1, 8).Draw(t, "src"))}
	f := append(dst[:], src[:]...)
	if rapid.Bool().Draw(t, "has a tag") {
		f = append(f, 0x81, 0, byte(rapid.IntRange(0, 15).Draw(t, "priority"))<<4, byte(rapid.IntRange(0, 4).Draw(t, "vlan")))
	}
	f = append(f, 8, 0)
	return append(f, bytes.Repeat([]byte{0xa5}, rapid.SampledFrom([]int{0, 46, 577, 1500, 1501}).Draw(t, "payload"))...)
}

func compare(t *rapid.T, number int, p *Port, want *[][]byte) {
	var out [3]Frame
	for n, _ := p.Take(0, out[:]); n > 0; n, _ = p.Take(0, out[:]) {
		for _, f := range out[:n] {
			if len(*want) == 0 || !bytes.Equal(f.Pieces[0], (*want)[0]) {
				t.Fatalf("port %d sends % x, want the first of % x", number, f.Pieces[0], *want)
			}
			*want = (*want)[1:]
		}
	}
	if len(*want) > 0 {
		t.Fatalf("port %d does not send % x", number, *want)
	}
}

func same(t *rapid.T, got []Entry, want []modelEntry, now clock.Time, ageing time.Duration) {
	known := map[Entry]bool{}
	for _, e := range want {
		if now.Sub(e.seen) < ageing {
			known[Entry{e.vlan, e.mac, e.port, now.Sub(e.seen)}] = true
		}
	}
	for _, e := range got {
		if !known[e] {
			t.Fatalf("%+v is known, want one of %+v", e, known)
		}
		delete(known, e)
	}
	if len(known) > 0 {
		t.Fatalf("%+v are not known", known)
	}
}

// TestQueue_Order: frames of any length come out of a queue whole and in order, while those taken before stay as they are; what
// finds no room is counted, and never overwrites what waits.
func TestQueue_Order(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(rapid.IntRange(64, 400).Draw(t, "bytes"), rapid.IntRange(1, 9).Draw(t, "frames"))
		var wait, held [][]byte
		var out [4]Frame
		serial := byte(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				serial++
				f := bytes.Repeat([]byte{serial}, rapid.IntRange(eth.EthernetLen, 90).Draw(t, "length"))
				if n := q.put(&Frame{Pieces: [3][]byte{f[:14], f[14:]}}, 0, nil); n == len(f) {
					wait = append(wait, f)
				} else if n != 0 {
					t.Fatalf("put %d of %d bytes", n, len(f))
				} else if len(wait)+len(held) == 0 && len(f) <= len(q.memory) {
					t.Fatal("an empty queue has no room")
				}
			} else {
				n := q.take(out[:rapid.IntRange(0, 4).Draw(t, "taken")])
				held, wait = wait[:n], wait[n:]
			}
			for i, f := range held {
				if !bytes.Equal(out[i].Pieces[0], f) {
					t.Fatalf("taken frame % x, want % x", out[i].Pieces[0], f)
				}
			}
		}
		if q.len != len(wait) {
			t.Fatalf("%d frames wait, want %d", q.len, len(wait))
		}
	})
}

// FuzzPort_Receive: no frame does anything but be forwarded or counted.
func FuzzPort_Receive(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8, 0}, uint16(1), 14)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 2, 0x81, 0, 0}, uint16(0), 14)
	f.Add([]byte{1, 2, 3}, uint16(0), 3)
	f.Fuzz(func(t *testing.T, data []byte, segment uint16, cut int) {
		b, p := pair(t, PortConfig{PVID: 1, Tagged: AllVLANs(), MTU: 1500}, PortConfig{PVID: 5, MTU: 1500})
		cut = min(max(cut, 0), len(data))
		fr := Frame{Pieces: [3][]byte{data[:cut], data[cut:]}, Task: offload.Task{Segment: segment}}
		p[0].Receive(0, &fr)
		c, o := p[0].Counters(), p[1].Counters()
		if dealt := c.Malformed + c.UnknownVLAN + c.Reserved + c.Filtered + c.Flooded; c.InFrames != 1 || dealt != 1 {
			t.Errorf("counters %+v", c)
		}
		var out [2]Frame
		if n, _ := p[1].Take(0, out[:]); uint64(n) != o.OutFrames || n > 1 || n == 1 && out[0].Len() > 1514 {
			t.Errorf("%d frames sent, counters %+v", n, o)
		}
		if len(b.Table(0)) > 1 {
			t.Errorf("table %+v", b.Table(0))
		}
	})
}

func pair(t testing.TB, configs ...PortConfig) (*Bridge, []*Port) {
	t.Helper()
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var ports []*Port
	for _, c := range configs {
		p, err := b.Add(c)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, p)
	}
	return b, ports
}
