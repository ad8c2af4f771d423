package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/packetdirect"
)

// frameEnd is a program with a receive and a transmit queue at an adapter of a driver.
type frameEnd struct {
	t    *testing.T
	a    *packetdirect.Adapter
	rx   *packetdirect.ReceiveQueue
	tx   *packetdirect.TransmitQueue
	free []*packetdirect.Buffer // to send

	filter *packetdirect.Steering // the last
}

// frameEnd opens an adapter of the place's driver; the filters are those of the receive queue.
func (p place) frameEnd(t *testing.T, adapter string, filters ...packetdirect.Filter) *frameEnd {
	t.Helper()
	a, err := packetdirect.Open(testbed.Context(t), packetdirect.Options{Adapter: adapter, Socket: filepath.Join(p.dir, "d.sock")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testbed.OK(t, a.Close()) })
	const depth = 64
	e := &frameEnd{t: t, a: a, rx: testbed.Must(a.NewReceiveQueue(packetdirect.QueueConfig{Depth: depth}))(t),
		tx: testbed.Must(a.NewTransmitQueue(packetdirect.QueueConfig{Depth: depth}))(t)}
	e.free = testbed.Must(a.NewPool(depth, 0))(t).Buffers()
	if _, _, err := e.rx.PostAndDrain(testbed.Must(a.NewPool(depth, 0))(t).Buffers(), nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range filters {
		e.filter = testbed.Must(e.rx.AddFilter(f))(t)
	}
	return e
}

// sends sends a frame.
func (e *frameEnd) sends(f []byte) {
	e.t.Helper()
	b := e.free[:1]
	b[0].Set(f)
	n, _, err := e.tx.PostAndDrain(b, nil)
	for err == nil && n == 1 {
		if _, n, err = e.tx.PostAndDrain(nil, b); n == 1 {
			break
		}
		n, err = 1, e.tx.Wait(testbed.Context(e.t))
	}
	testbed.OK(e.t, err)
}

// has reports whether a frame has come; others are skipped.
func (e *frameEnd) has(f []byte) bool {
	e.t.Helper()
	var b [1]*packetdirect.Buffer
	for {
		_, n, err := e.rx.PostAndDrain(nil, b[:])
		if testbed.OK(e.t, err); n == 0 {
			return false
		}
		found := bytes.Equal(b[0].Bytes(), f)
		if _, _, err := e.rx.PostAndDrain(b[:], nil); err != nil {
			e.t.Fatal(err)
		}
		if found {
			return true
		}
	}
}

// reaches sends a frame until it arrives at the other end: an interface that has just been made loses some.
func (e *frameEnd) reaches(other *frameEnd, f []byte) {
	e.t.Helper()
	if !await.Until(func() bool {
		e.sends(f)
		return other.has(f)
	}) {
		e.t.Fatalf("a frame of %d bytes does not arrive", len(f))
	}
}

// experimental returns a frame of n bytes of an EtherType for experiments.
func experimental(to, from [6]byte, etherType uint16, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*n + n)
	}
	copy(b, to[:])
	copy(b[6:], from[:])
	binary.BigEndian.PutUint16(b[12:], etherType)
	return b
}

// TestFrames_Wires: programs of two adapters send each other frames of every length over each kind of wire that carries whole
// ones, between two drivers and in one, with and without a host beside them; unicast, to a group, and in a VLAN.
func TestFrames_Wires(t *testing.T) {
	systemtest.Mark(t)
	const a, b = "a=192.0.2.1/24,mac=02:00:00:00:00:01,", "b=192.0.2.2/24,mac=02:00:00:00:00:02,"
	for _, c := range []struct {
		name          string
		first, second []string // the adapters of the drivers; nil: there is one
		namespace     int      // of the second driver
	}{
		{"interface", []string{a + "interface=wire"}, []string{b + "interface=wire"}, 1},
		{"interface with hosts", []string{a + "interface=wire,host=tap:nic"}, []string{b + "interface=wire,host=tap:nic"}, 1},
		{"TAP and its interface", []string{a + "tap=pdtap"}, []string{b + "interface=pdtap"}, 0},
		{"switch", []string{a + "switch=s", b + "switch=s"}, nil, 0},
		{"switch with a host", []string{a + "switch=s,host=tap:nic", b + "switch=s"}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := linuxHosts(t, 1500)
			places := [2]place{h[0].place, h[0].place}
			h[0].spawn(t, adapters(c.first)...).until(t, "listening")
			if c.second != nil {
				places[1] = newPlace(t)
				places[1].start = h[c.namespace].within
				places[1].spawn(t, adapters(c.second)...).until(t, "listening")
			}
			const etherType = 0x88b5
			group := [6]byte{1, 0, 0x5e, 1, 2, 3}
			filter := packetdirect.Filter{EtherType: etherType}
			one, two := places[0].frameEnd(t, "a", filter), places[1].frameEnd(t, "b", filter)
			for _, n := range []int{60, 61, 64, 65, 500, 1514} {
				one.reaches(two, experimental(two.a.MAC(), one.a.MAC(), etherType, n))
				two.reaches(one, experimental(one.a.MAC(), two.a.MAC(), etherType, n))
			}
			one.reaches(two, experimental(group, one.a.MAC(), etherType, 200))
			tagged := experimental(one.a.MAC(), two.a.MAC(), 0x8100, 1518)
			binary.BigEndian.PutUint16(tagged[14:], 7)
			binary.BigEndian.PutUint16(tagged[16:], etherType)
			if c.name[0] != 's' { // ports of the switch are in its VLAN 1
				two.reaches(one, tagged)
			}
		})
	}
}

// adapters returns the options of up.
func adapters(list []string) []string {
	args := []string{"up", "--skip-self-check"}
	for _, a := range list {
		args = append(args, "--adapter", a)
	}
	return args
}

// TestFrames_Neighbours: a program that floods a wire, and one that has stopped reading, do no harm to the hosts and to another
// program on the same ports; when they are killed, their queues and filters end.
func TestFrames_Neighbours(t *testing.T) {
	systemtest.Mark(t)
	h := linuxHosts(t, 1500)
	for _, x := range h {
		x.up(t)
		x.address(t)
	}
	a, b := h[0], h[1]
	a.shell(t, "ping -c 1 -W 1 "+b.ip)
	const mine = 0x88b6
	one, two := a.frameEnd(t, "port"), b.frameEnd(t, "port", packetdirect.Filter{EtherType: mine})
	// deaf has posted buffers and never looks; the reader goes on for an hour.
	deaf := b.frameEnd(t, "port", packetdirect.Filter{EtherType: 0x88b5, Src: one.a.MAC()})
	reader := b.spawn(t, "bench-frames", "--receive", "--adapter", "port", "--seconds", "3600")
	flood := a.spawn(t, "bench-frames", "--adapter", "port", "--to", b.mac, "--seconds", "3600")
	flood.until(t, "sending")
	await.Eventually(t, "the one that does not read is full", func() bool { return deaf.full() })
	for n := range 20 {
		one.reaches(two, experimental(two.a.MAC(), one.a.MAC(), mine, 100+n))
	}
	a.shell(t, "ping -c 3 -i 0.2 "+b.ip)
	b.begin(t, "iperf3", "-s", "-1")
	a.shell(t, "iperf3 -c "+b.ip+" -t 1")
	for _, x := range []*process{reader, flood} {
		if err := x.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-x.ended
	}
	for _, x := range h {
		await.Eventually(t, "the killed program is gone from the status", func() bool {
			for _, p := range x.status(t).Programs {
				if p.PID == reader.cmd.Process.Pid || p.PID == flood.cmd.Process.Pid {
					return false
				}
			}
			return true
		})
	}
	if err := deaf.rx.Close(); err != nil {
		t.Error(err)
	}
	// Had a filter of the killed reader been left it would go before this one.
	rest := b.frameEnd(t, "port", packetdirect.Filter{EtherType: 0x88b5, Priority: 1})
	one.reaches(rest, experimental(rest.a.MAC(), one.a.MAC(), 0x88b5, 99))
	a.shell(t, "ping -c 1 -W 1 "+b.ip)
}

// full reports whether the adapter has filled all buffers of the receive queue.
func (e *frameEnd) full() bool {
	e.t.Helper()
	s, err := e.filter.Counters()
	testbed.OK(e.t, err)
	return s.Lost > 0
}

// TestFrames_SmallerMTU: a frame that is too long for what the wire carries by now is an error of its own, and the queue goes on.
func TestFrames_SmallerMTU(t *testing.T) {
	systemtest.Mark(t)
	h := linuxHosts(t, 1500)
	var end [2]*frameEnd
	for i, x := range h {
		x.spawn(t, adapters([]string{fmt.Sprintf("port=%s/24,interface=wire,mac=%s", x.ip, x.mac)})...).until(t, "listening")
		end[i] = x.frameEnd(t, "port", packetdirect.Filter{EtherType: 0x88b5})
	}
	one, two := end[0], end[1]
	long, short := experimental(two.a.MAC(), one.a.MAC(), 0x88b5, 1514), experimental(two.a.MAC(), one.a.MAC(), 0x88b5, 900)
	one.reaches(two, long)
	h[0].shell(t, "ip link set wire mtu 1000")
	await.Eventually(t, "a long frame is refused", func() bool {
		one.sends(long)
		return one.tx.Counters().Errors > 0
	})
	one.reaches(two, short)
	if n := one.tx.Depth(); n != 0 {
		t.Errorf("%d frames are still posted", n)
	}
}
