package fabric

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// bringUp returns a working fabric without a subnet manager: node i has LID i+1, routes are the shortest, an adapter
// is plugged in at each host, and nothing expires.
func bringUp(top *topology.Topology) *Fabric {
	f := New(top, func() uint64 { return 1 << 63 })
	for i := range f.ports {
		p := &f.ports[i]
		n := &f.nodes[p.node]
		if p.up() {
			p.info.PortState = mad.PortActive
		}
		if !n.external(p) {
			p.info.LID, p.info.MasterSMLID = ib.LID(p.node+1), 1
		}
		if p.number == 1 && n.kind == mad.NodeCA {
			f.Plug(0, f.place(p), true)
		}
	}
	for i := range f.nodes {
		if sw := f.nodes[i].sw; sw != nil {
			sw.info.LinearFDBTop, sw.info.LifeTimeValue = uint16(len(f.nodes)), 20
		}
	}
	for target := range f.nodes {
		f.routeTo(target)
	}
	return f
}

// routeTo fills the tables for one target, breadth first.
func (f *Fabric) routeTo(target int) {
	seen := make([]bool, len(f.nodes))
	seen[target] = true
	for queue := []int{target}; len(queue) > 0; queue = queue[1:] {
		n := &f.nodes[queue[0]]
		for j := int(n.first); j <= int(n.first)+int(n.count); j++ {
			if f.ports[j].peer == noPort {
				continue
			}
			q := &f.ports[f.ports[j].peer]
			if seen[q.node] {
				continue
			}
			seen[q.node] = true
			if sw := f.nodes[q.node].sw; sw != nil {
				at := (target + 1) &^ (linearBlock - 1)
				sw.block(at)[target+1-at] = q.number
				queue = append(queue, int(q.node))
			}
		}
	}
}

// frame returns a packet with a number in it.
func frame(from, to ib.LID, sl uint8, key ib.PKey, payload int, number uint64) []byte {
	b := make([]byte, minFrame+payload)
	h := ib.LRH(b)
	h.SetSL(sl)
	h.SetNextHeader(ib.LNHLocal)
	h.SetDLID(to)
	h.SetSLID(from)
	h.SetPktLen(len(b) / 4)
	ib.BTH(b[ib.LRHLen:]).SetPKey(key)
	ib.BTH(b[ib.LRHLen:]).SetDestQP(0x12)
	if payload >= 8 {
		binary.BigEndian.PutUint64(b[ib.LRHLen+ib.BTHLen:], number)
	}
	return b
}

func numberOf(b []byte) uint64 { return binary.BigEndian.Uint64(b[ib.LRHLen+ib.BTHLen:]) }

func transmit(t testing.TB, f *Fabric, now clock.Time, from int, b []byte) {
	t.Helper()
	if ok, err := f.Transmit(now, Place{from, 1}, b, nil, nil); !ok || err != nil {
		t.Fatalf("Transmit took the packet: %v, error %v", ok, err)
	}
}

// settle runs everything that is due and returns the time of the last of it.
func settle(f *Fabric) (now clock.Time) {
	for f.Deadline() != clock.Never {
		now = f.Deadline()
		f.Advance(now)
	}
	return now
}

func received(f *Fabric, now clock.Time, at int) []byte {
	var taken [1]*Parcel
	if f.Collect(now, Place{at, 1}, taken[:]) == 0 {
		return nil
	}
	b := bytes.Clone(taken[0].Bytes())
	f.Release(now, taken[:])
	return b
}

func star(t testing.TB, hosts int, r topology.Rate) *Fabric {
	t.Helper()
	top, err := topology.Star(hosts, r)
	if err != nil {
		t.Fatal(err)
	}
	return bringUp(top)
}
