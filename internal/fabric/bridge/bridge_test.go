package bridge

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

func ethernet(dst, src byte, n int) *Frame {
	f := make([]byte, n)
	copy(f, []byte{2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 8, 0})
	return &Frame{Pieces: [3][]byte{f[:eth.EthernetLen], f[eth.EthernetLen:]}}
}

// TestBridge_Ageing: a source that is not heard of for the ageing time is forgotten, and frames to it are flooded again
// (IEEE 802.1Q, 8.8.3).
func TestBridge_Ageing(t *testing.T) {
	access := PortConfig{PVID: 1, MTU: 1500}
	_, p := pair(t, access, access, access)
	p[0].Receive(0, ethernet(9, 1, 60))
	for _, c := range []struct {
		at   time.Duration
		want uint64
	}{{0, 1}, {DefaultAgeing - 1, 1}, {DefaultAgeing, 2}} {
		p[1].Receive(clock.Time(c.at), ethernet(1, 2, 60))
		if got := p[2].Counters().OutFrames; got != c.want {
			t.Errorf("after %v the third port has sent %d frames, want %d", c.at, got, c.want)
		}
	}
}

// TestBridge_BadFCS: a frame with a wrong FCS passes as such, and its source, which may be what is damaged, is not learned
// (IEEE 802.1Q, 8.7): it moves no station and makes up none.
func TestBridge_BadFCS(t *testing.T) {
	access := PortConfig{PVID: 1, MTU: 1500}
	b, p := pair(t, access, access, access)
	p[0].Receive(0, ethernet(9, 1, 60))
	for _, src := range []byte{1, 7} {
		bad := ethernet(1, src, 60)
		bad.BadFCS = true
		p[1].Receive(0, bad)
	}
	if table := b.Table(0); len(table) != 1 || table[0].Port != 0 {
		t.Errorf("known are %+v, want the station of port 0 alone", table)
	}
	var out [4]Frame
	if n, _ := p[0].Take(0, out[:]); n != 2 || !out[0].BadFCS {
		t.Errorf("port 0 sends %d frames, the first of them bad: %v; want 2, true", n, out[0].BadFCS)
	}
}

// TestBridge_Entries: a port that makes up sources takes no other port's place in the table.
func TestBridge_Entries(t *testing.T) {
	access := PortConfig{PVID: 1, MTU: 1500}
	b, p := pair(t, access, access)
	for i := range 3 * DefaultEntries {
		f := ethernet(9, 0, 60)
		f.Pieces[0][10], f.Pieces[0][11] = byte(i>>8)|0x40, byte(i)
		p[0].Receive(0, f)
	}
	p[1].Receive(0, ethernet(9, 2, 60))
	if n := len(b.Table(0)); n != DefaultEntries+1 {
		t.Errorf("%d sources are known, want %d", n, DefaultEntries+1)
	}
	if c := p[0].Counters(); c.NotLearned != 2*DefaultEntries {
		t.Errorf("counters %+v", c)
	}
	p[0].Receive(clock.Time(DefaultAgeing), ethernet(9, 1, 60)) // those that are forgotten make room
	if n := len(b.Table(clock.Time(DefaultAgeing))); n != 1 {
		t.Errorf("%d sources are known, want 1", n)
	}
}

// TestPort_Remove: what was known of a port that is gone is forgotten, and the others stay.
func TestPort_Remove(t *testing.T) {
	access := PortConfig{PVID: 1, MTU: 1500}
	b, p := pair(t, access, access, access)
	for i := range p {
		p[i].Receive(0, ethernet(9, byte(i+1), 60))
	}
	p[1].Remove(0)
	if table := b.Table(0); len(table) != 2 || table[0].Port != 0 || table[1].Port != 2 {
		t.Errorf("table %+v", table)
	}
	if n, err := b.Add(access); err != nil || n.Number() != 1 {
		t.Errorf("new port %+v, %v", n, err)
	}
}

// TestPort_Overflow: what finds no room in a port's queue is lost and counted, and the other ports get it.
func TestPort_Overflow(t *testing.T) {
	small := PortConfig{PVID: 1, MTU: 1500, Queue: 1518 * 2}
	_, p := pair(t, small, small, PortConfig{PVID: 1, MTU: 1500})
	for range 5 {
		p[0].Receive(0, ethernet(9, 1, 1514))
	}
	if c := p[1].Counters(); c.OutFrames != 2 || c.QueueDrops != 3 || p[1].Waiting(0) != 2 {
		t.Errorf("the small port: %+v", c)
	}
	if c := p[2].Counters(); c.OutFrames != 5 || c.QueueDrops != 0 {
		t.Errorf("the large port: %+v", c)
	}
}

// TestPort_Large: a frame whose segments are still to be cut passes as it is, whatever the MTU.
func TestPort_Large(t *testing.T) {
	access := PortConfig{PVID: 1, MTU: 1500}
	_, p := pair(t, access, PortConfig{Tagged: AllVLANs(), MTU: 1500})
	f := ethernet(9, 1, 60000)
	f.Task = offload.Task{Kind: offload.TCPv4, Segment: 1460}
	if woken := p[0].Receive(0, f); woken != 2 {
		t.Errorf("woken ports %b", woken)
	}
	var out [2]Frame
	if n, _ := p[1].Take(0, out[:]); n != 1 || out[0].Task != f.Task || out[0].Len() != 60004 {
		t.Errorf("%d frames, the first has %d bytes and %+v", n, out[0].Len(), out[0].Task)
	}
}

// TestBridge_Invalid: wrong configurations are refused with the field.
func TestBridge_Invalid(t *testing.T) {
	if _, err := New(Config{Ageing: time.Millisecond}); field(err) != "Ageing" {
		t.Error(err)
	}
	if _, err := New(Config{Entries: -1}); field(err) != "Entries" {
		t.Error(err)
	}
	b, _ := pair(t)
	for want, c := range map[string]PortConfig{
		"PVID": {MTU: 1500}, "MTU": {PVID: 1, MTU: 100}, "Queue": {PVID: 1, MTU: 1500, Queue: 1517},
	} {
		if _, err := b.Add(c); field(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for range MostPorts {
		if _, err := b.Add(PortConfig{PVID: 1, MTU: 1500}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Add(PortConfig{PVID: 1, MTU: 1500}); field(err) != "ports" {
		t.Error(err)
	}
}

func field(err error) string {
	var f *FieldError
	if !errors.As(err, &f) {
		return ""
	}
	return f.Field
}

// TestParseVLANs: sets are written as they are read.
func TestParseVLANs(t *testing.T) {
	for in, want := range map[string]string{"1": "1", "20+10": "10+20", "1-3+2-5+9": "1-5+9", "1-4094": "all", "all": "all", "4093+4094": "4093-4094"} {
		if v, err := ParseVLANs(in); err != nil || v.String() != want {
			t.Errorf("%q: %v, %v, want %q", in, v, err, want)
		}
	}
	for _, in := range []string{"", "0", "4095", "1-", "-1", "3-2", "1+", "a", "1,2"} {
		if v, err := ParseVLANs(in); err == nil {
			t.Errorf("%q: %v, want an error", in, v)
		}
	}
}

// TestPort_Receive_Allocations: forwarding allocates nothing.
func TestPort_Receive_Allocations(t *testing.T) {
	_, p := pair(t, PortConfig{PVID: 1, MTU: 1500}, PortConfig{Tagged: AllVLANs(), MTU: 1500})
	f := ethernet(9, 1, 1514)
	out := make([]Frame, 64)
	serial := byte(0)
	if n := testing.AllocsPerRun(1000, func() {
		serial++
		f.Pieces[0][11] = serial
		p[0].Receive(0, f)
		p[1].Take(0, out)
	}); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// BenchmarkPort_Receive forwards bursts of 32 frames between two ports that know each other.
func BenchmarkPort_Receive(b *testing.B) {
	for _, size := range []int{60, 1514} {
		b.Run(map[int]string{60: "short", 1514: "full"}[size], func(b *testing.B) {
			access := PortConfig{PVID: 1, MTU: 1500}
			_, p := pair(b, access, access)
			p[1].Receive(0, ethernet(1, 2, 60))
			f := ethernet(2, 1, size)
			out := make([]Frame, 32)
			b.ReportAllocs()
			for b.Loop() {
				for range len(out) {
					p[0].Receive(0, f)
				}
				p[1].Take(0, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(out)), "ns/frame")
		})
	}
}

// TestBridge_MACControl: no MAC control frame is forwarded, whatever its address is (IEEE 802.3, 31.3).
func TestBridge_MACControl(t *testing.T) {
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var ports [2]*Port
	for i := range ports {
		if ports[i], err = b.Add(PortConfig{PVID: 1, MTU: 1500}); err != nil {
			t.Fatal(err)
		}
	}
	for i, dst := range []eth.MAC{eth.PauseMAC, {2, 0, 0, 0, 0, 2}, eth.Broadcast} {
		f := (&eth.Pause{Src: eth.MAC{2, 0, 0, 0, 0, 1}, Quanta: [8]uint16{1}}).Append(nil)
		copy(f, dst[:])
		if woken := ports[0].Receive(0, &Frame{Pieces: [3][]byte{f}}); woken != 0 || ports[1].Waiting(0) != 0 {
			t.Errorf("a pause to %v is forwarded", dst)
		}
		if n := ports[0].Counters().Reserved; n != uint64(i+1) {
			t.Errorf("%d are counted", n)
		}
	}
}
