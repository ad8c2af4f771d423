package main

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/wire/eth"
)

// Hosts of several links are in a file for simulations as they are live: an adapter is plugged in at each link, the switch takes their
// ports as one, and each flow to the host takes one of them.
func TestNetworkOfBundles(t *testing.T) {
	f, err := scenario.Load("../../examples/simulate/bundle.json")
	if err != nil || len(f.Graph.Nodes[f.Graph.Hosts[0]].Links) != 2 {
		t.Fatalf("the example of simulations: %v", err)
	}
	file, err := scenario.ReadFabric("f", []byte(`{"topology": {"kind": "star", "hosts": 2, "bundle": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	n, err := fabricRunCmd{Seed: 1}.network(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Time(0)
	plug := func(name string) *lan.Jack {
		j, err := n.Plug(now, name, "")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	bond := []*lan.Jack{plug("host0"), plug("host0[2]")}
	other := plug("host1")
	// A frame with a UDP source port, from one of the hosts to the other.
	frame := func(from, to byte, port int) []byte {
		b := make([]byte, 100)
		(&eth.Ethernet{Src: eth.MAC{2, 0, 0, 0, 0, from}, Dst: eth.MAC{2, 0, 0, 0, 0, to}, Type: eth.TypeIPv4}).Put(b)
		eth.IPv4(b[eth.EthernetLen:]).Encode(0, len(b)-eth.EthernetLen, 0, 64, eth.ProtocolUDP, [4]byte{10, 0, 0, from},
			[4]byte{10, 0, 0, to})
		binary.BigEndian.PutUint16(b[eth.EthernetLen+eth.IPv4Len:], uint16(port))
		return b
	}
	pass := func() {
		for until := now.Add(time.Millisecond); n.Deadline() <= until; {
			now = max(now, n.Deadline())
			n.Advance(now)
		}
		now = now.Add(time.Millisecond)
	}
	count := func(j *lan.Jack) (frames int) {
		for j.Waiting() > 0 {
			if eth.EtherType(binary.BigEndian.Uint16(j.Next(now)[12:])) == eth.TypeIPv4 {
				frames++
			}
		}
		return frames
	}
	bond[1].Transmit(now, frame(1, 2, 0))
	pass()
	if got := count(other); got != 1 || count(bond[0]) != 0 {
		t.Errorf("%d frames of the second link arrive", got)
	}
	const flows = 32
	for i := range flows {
		other.Transmit(now, frame(2, 1, 50_000+i))
	}
	pass()
	if first, second := count(bond[0]), count(bond[1]); first+second != flows || first == 0 || second == 0 {
		t.Errorf("of %d flows %d and %d come over the links", flows, first, second)
	}
	if _, mine, err := n.Command(now, []string{"unlink", "host0[2]"}); !mine || err != nil {
		t.Fatal(mine, err)
	}
	for i := range flows {
		other.Transmit(now, frame(2, 1, 50_000+i))
	}
	pass()
	if first, second := count(bond[0]), count(bond[1]); first != flows || second != 0 || bond[1].State().Up || !bond[0].State().Up {
		t.Errorf("with the second cable out %d and %d come over the links", first, second)
	}
}

// TestIdleLACP: a file that says how switches aggregate links, where no host has several, has said nothing, and who runs it is told.
func TestIdleLACP(t *testing.T) {
	for text, want := range map[string]bool{
		`{"topology": {"kind": "star", "hosts": 2}, "switch": {"lacp": "active"}}`:              true,
		`{"topology": {"kind": "star", "hosts": 2, "bundle": 2}, "switch": {"lacp": "active"}}`: false,
		`{"topology": {"kind": "star", "hosts": 2}, "switch": {"lacp": "off"}}`:                 false,
		`{"topology": {"kind": "star", "hosts": 2}}`:                                            false,
	} {
		file, err := scenario.ReadFabric("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := file.IdleLACP(); got != want {
			t.Errorf("%s: idle %v, want %v", text, got, want)
		}
	}
}
