package ethernet_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	fabric "github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/sim/ethernet"
	"github.com/softvpi/softvpi/wire/eth"
)

const length = 1048

// source sends numbered frames of priority 3 at a constant rate.
type source struct {
	frame []byte
	gap   clock.Time
	due   clock.Time
	sent  uint32
	end   uint32
}

func (s *source) Receive(clock.Time, []frame.In) {}
func (s *source) Advance(clock.Time)             {}

func (s *source) Deadline() clock.Time {
	if s.sent == s.end {
		return clock.Never
	}
	return s.due
}

func (s *source) Transmit(now clock.Time, out []frame.Out) int {
	if s.sent == s.end || now < s.due {
		return 0
	}
	binary.BigEndian.PutUint32(s.frame[length-4:], s.sent)
	out[0].Reset(&frame.Route{})
	out[0].Payload = s.frame
	s.sent++
	s.due += s.gap
	return 1
}

// sink counts what arrives, by sender.
type sink struct {
	t    *testing.T
	got  map[byte]uint32
	last clock.Time
	lost bool // frames may be missing
}

func (s *sink) Advance(clock.Time)                   {}
func (s *sink) Deadline() clock.Time                 { return clock.Never }
func (s *sink) Transmit(clock.Time, []frame.Out) int { return 0 }
func (s *sink) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		from, n := in[i].Data[11], binary.BigEndian.Uint32(in[i].Data[length-4:])
		if want := s.got[from]; n < want || n > want && !s.lost {
			s.t.Fatalf("frame %d of %d arrives, want %d", n, from, want)
		}
		s.got[from] = n + 1
		s.last = now
	}
}

// incast is senders at a constant rate of 0.9 times 40 Gb/s and a receiver, at one switch.
func incast(t *testing.T, senders int, port fabric.PortConfig, frames uint32) (*sim.Network, *ethernet.Fabric, *sink) {
	n := sim.New(1)
	f := ethernet.Add(n, new(fabric.Fabric))
	ports := make([]fabric.PortConfig, senders+1)
	for i := range ports {
		ports[i] = port
	}
	sw, err := fabric.New(&f.Store, fabric.Config{}, ports)
	if err != nil {
		t.Fatal(err)
	}
	f.AddSwitch(sw)
	mac := func(i int) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, byte(i)} }
	to := &sink{t: t, got: map[byte]uint32{}, lost: port.Lossless == 0}
	for i := 1; i <= senders+1; i++ {
		s, err := fabric.NewStation(&f.Store, fabric.StationConfig{Wire: port})
		if err != nil {
			t.Fatal(err)
		}
		station := f.AddStation(s)
		if err := f.Connect(fabric.End{Node: station}, fabric.End{Node: 0, Port: i - 1}); err != nil {
			t.Fatal(err)
		}
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		if i == 1 {
			f.Plug(station, addr, &announcer{sink: to, frame: packet(mac(1), eth.Broadcast)})
			continue
		}
		f.Plug(station, addr, &source{frame: packet(mac(i), mac(1)), due: 100_000, gap: (length + 24) * 8 * 10 / (9 * 40), end: frames})
	}
	return n, f, to
}

// announcer is a sink that sends a frame at first, so that the switch knows where it is.
type announcer struct {
	*sink
	frame []byte
}

func (a *announcer) Deadline() clock.Time {
	if a.frame == nil {
		return clock.Never
	}
	return 0
}

func (a *announcer) Transmit(_ clock.Time, out []frame.Out) int {
	if a.frame == nil {
		return 0
	}
	out[0].Reset(&frame.Route{})
	out[0].Payload, a.frame = a.frame, nil
	return 1
}

func packet(src, dst eth.MAC) []byte {
	b := make([]byte, length)
	(&eth.Ethernet{Dst: dst, Src: src, Type: eth.TypeIPv4}).Put(b)
	ip := eth.IPv4(b[eth.EthernetLen:])
	ip.Encode(3<<5|2, length-eth.EthernetLen, 0, 64, eth.ProtocolUDP, [4]byte{10, 0, 0, src[5]}, [4]byte{10, 0, 0, 1})
	return b
}

// TestFabric_Incast: senders at a constant rate that meet at one port lose nothing with PFC, each has its share, and the port is
// used fully; without, most is lost, and what arrives and what is counted as lost is what was sent.
func TestFabric_Incast(t *testing.T) {
	const frames = 3000
	for _, senders := range []int{2, 16} {
		for _, pfc := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d to 1, PFC %v", senders, pfc), func(t *testing.T) {
				port := fabric.PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: fabric.TrustDSCP}
				port.Queues[3].Most = 100_000
				if pfc {
					port.FlowControl, port.Lossless = fabric.PriorityPause, 1<<3
					port.Groups[3].Xoff = 20_000
				}
				n, f, to := incast(t, senders, port, frames)
				n.Pass(20 * time.Millisecond)
				lost, paused := uint64(0), uint64(0)
				for i := range senders + 1 {
					c := f.Switch(0).Port(i).Counters(n.Now()).Priority[3]
					lost += c.HeadroomDrops + c.QueueDrops + c.BufferDrops
					paused += c.Pause.Sent
				}
				if pfc != (lost == 0) || pfc != (paused > 0) {
					t.Errorf("%d frames are lost, %d pauses were sent", lost, paused)
				}
				all := uint64(0)
				for i := range senders {
					got := to.got[byte(i+2)]
					if all += uint64(got); pfc && got != frames {
						t.Errorf("%d of %d frames of sender %d have arrived", got, frames, i+2)
					}
				}
				if wire := float64(all) * (length + 24) * 8 / float64(to.last-100_000) * 1e9; pfc && wire < 0.99*40e9 {
					t.Errorf("%.4g b/s have arrived", wire)
				}
				if u := f.Switch(0).Usage(n.Now()); u.Used != 0 || u.Headroom != 0 || f.Store.Frames() != 0 || f.Refused != 0 {
					t.Errorf("%+v is used, %d frames are left, %d were refused", u, f.Store.Frames(), f.Refused)
				}
			})
		}
	}
}

// TestFabric_Repeats: the same run has the same result.
func TestFabric_Repeats(t *testing.T) {
	port := fabric.PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: fabric.TrustDSCP, FlowControl: fabric.PriorityPause,
		Lossless: 1 << 3}
	var last fabric.Counters
	for i := range 2 {
		n, f, _ := incast(t, 3, port, 1000)
		n.Pass(10 * time.Millisecond)
		c := f.Switch(0).Port(0).Counters(n.Now())
		if i > 0 && c != last {
			t.Errorf("%+v, before %+v", c, last)
		}
		last = c
	}
}

// TestFabric_Refuses: what is no frame is counted, and costs nothing else.
func TestFabric_Refuses(t *testing.T) {
	_, f, _ := incast(t, 2, fabric.PortConfig{}, 0)
	if !f.Accept(0, 2, []byte{1, 2, 3}) || !f.Accept(0, 2, make([]byte, 20_000)) || f.Refused != 2 || f.Store.Frames() != 0 {
		t.Errorf("%d were refused, %d frames are there", f.Refused, f.Store.Frames())
	}
}
