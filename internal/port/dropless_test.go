package port

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
)

// hungry is a function that takes as many frames as it has receives for.
type hungry struct {
	card
	receives int
	queue    uint32
	taken    uint64
}

func (h *hungry) Take(now clock.Time, in []frame.In) (int, uint32) {
	n := min(len(in), h.receives)
	h.receives -= n
	h.Receive(now, in[:n])
	return n, h.queue
}

func (h *hungry) Receive(_ clock.Time, in []frame.In) {
	for i := range in {
		h.in = append(h.in, frame.In{Data: slices.Clone(in[i].Data)})
		h.taken++
	}
}

func (h *hungry) Filled() uint8          { return 0 }
func (h *hungry) Stands() (bool, uint64) { return false, h.taken }

// dropless is a port with such a function, in dropless mode.
type dropless struct {
	Port
	w       *Wire
	f       *hungry
	expired []uint32
	next    byte
}

func newDropless(timeout time.Duration, asks pause.Scope) *dropless {
	d := &dropless{w: &Wire{}, f: &hungry{card: card{queues: queues{due: clock.Never}}, queue: 9}}
	d.Attach(d.f, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}, Kind: Ethernet}).Plug(d.w, netip.Addr{}, nil)
	d.SetFlowControl(0, d.w, pause.Config{Asks: asks, Rate: 10e9})
	d.Port.SetDropless(Dropless{Timeout: timeout, Expired: func(q uint32) { d.expired = append(d.expired, q) }})
	return d
}

// arrive lets n frames of so many bytes arrive at a priority.
func (d *dropless) arrive(now clock.Time, n, size int, priority uint16) {
	for range n {
		b := ethernetTo(eth.MAC{2, 0, 0, 0, 0, 1}, priority<<13|1, size)
		d.next++
		b[18] = d.next
		d.Receive(now, d.w, []frame.In{{Data: b, Raw: true}})
		clear(b) // the link uses its memory again
	}
}

// came returns the numbers of the frames that the function has.
func (d *dropless) came() (numbers []byte) {
	for _, in := range d.f.in {
		numbers = append(numbers, in.Data[18])
	}
	return numbers
}

func micro(n int) clock.Time { return clock.Time(n) * clock.Time(time.Microsecond) }

// TestDropless_Order: what finds no receive waits with all behind it, in order, and goes on as receives come; the port is due again by
// itself.
func TestDropless_Order(t *testing.T) {
	d := newDropless(Forever, pause.Scope{})
	d.f.receives = 2
	d.arrive(0, 5, 100, 0)
	if got := d.came(); !slices.Equal(got, []byte{1, 2}) || d.Waiting() != 3 || d.Stalls().States != 1 {
		t.Fatalf("%v have come, %d wait", got, d.Waiting())
	}
	d.f.receives = 2
	d.arrive(micro(1), 1, 100, 0) // behind those that wait, although there are receives now
	if due := d.Deadline(); due > micro(10) || len(d.f.in) != 2 {
		t.Errorf("due at %v, %d have come", due, len(d.f.in))
	}
	d.Advance(micro(10))
	d.f.receives = 10
	for now := micro(11); d.Waiting() > 0 && now < micro(10_000); now = max(now+1, d.Deadline()) {
		d.Advance(now)
	}
	if got := d.came(); !slices.Equal(got, []byte{1, 2, 3, 4, 5, 6}) || d.Deadline() != clock.Never {
		t.Errorf("%v have come, due at %v", got, d.Deadline())
	}
}

// TestDropless_Timeout: the packet that waits for longer than the time-out ends the mode, and is handed on without a receive, as are those
// behind it; each packet has its own time (WinOF-2 Ethernet, Dropless Mode).
func TestDropless_Timeout(t *testing.T) {
	d := newDropless(5*time.Millisecond, pause.Scope{})
	d.arrive(0, 1, 100, 0)
	step := func(to clock.Time) {
		for now := d.Deadline(); now <= to; now = max(now+1, d.Deadline()) {
			d.Advance(now)
		}
	}
	step(micro(4_900))
	d.arrive(micro(4_900), 1, 100, 0)
	d.f.receives = 1
	step(micro(9_000)) // the first has gone, and the second waits since then
	if len(d.f.in) != 1 || len(d.expired) != 0 {
		t.Fatalf("%d have come, expired %v", len(d.f.in), d.expired)
	}
	step(micro(10_500))
	if len(d.f.in) != 2 || !slices.Equal(d.expired, []uint32{9}) || d.Dropless() != 0 || d.Waiting() != 0 {
		t.Errorf("%d have come, expired %v, %d wait", len(d.f.in), d.expired, d.Waiting())
	}
	d.arrive(micro(11_000), 1, 100, 0)
	if len(d.f.in) != 3 {
		t.Error("one waits although the mode is over")
	}
}

// TestDropless_Xoff: the other end is asked to pause the lossless priorities when Xoff bytes of them wait, and to go on below Xon; those
// of others do not count, and have less room.
func TestDropless_Xoff(t *testing.T) {
	d := newDropless(Forever, pause.Only(1<<3))
	d.arrive(0, 100, 1000, 0)
	d.Advance(0)
	if d.FlowControl().Ready(0) {
		t.Error("priority 0 makes it ask for a pause")
	}
	n := xoff/(1000+18+keeping) + 1
	d.arrive(0, n-1, 1000, 3)
	if d.Advance(0); d.FlowControl().Ready(0) {
		t.Error("it asks before Xoff")
	}
	d.arrive(0, 1, 1000, 3)
	if d.Advance(0); !d.FlowControl().Ready(0) {
		t.Fatal("it does not ask at Xoff")
	}
	if f, err := eth.ParsePause(d.FlowControl().Append(0, nil)); err != nil || f.Enabled != 8 || f.Quanta[3] != 0xffff {
		t.Errorf("%+v, %v", f, err)
	}
	d.f.receives = 100 + n - xon/(1000+18+keeping) - 1
	now := micro(1000)
	for ; d.f.receives > 0; now = max(now+1, d.backlog.again) {
		d.Advance(now)
	}
	if d.FlowControl().Told() == 0 || d.FlowControl().Ready(now) && !d.backlog.asking {
		t.Error("the other end may go on above Xon")
	}
	d.f.receives = 2
	for ; d.f.receives > 0; now = max(now+1, d.backlog.again) {
		d.Advance(now)
	}
	if f, err := eth.ParsePause(d.FlowControl().Append(now, nil)); err != nil || f.Enabled != 8 || f.Quanta[3] != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	d.arrive(now, 2*lossyRoom/1000, 1000, 0)
	if lost := d.Overruns(); lost[0] == 0 || lost[3] != 0 || d.backlog.used(^uint8(8)) > lossyRoom {
		t.Errorf("lost %v, %d bytes wait", lost, d.backlog.used(^uint8(8)))
	}
}

// TestWatch: a receive path that stands still is counted after its watermark and its time-out, once, when flow control ends for all
// priorities; it is back when something is taken (WinOF-2 Ethernet, Receive Path Activity Monitoring).
func TestWatch(t *testing.T) {
	d := newDropless(Forever, pause.Only(1<<3|1<<4))
	d.SetWatch(Watch{Watermark: 10 * time.Millisecond, Timeout: 20 * time.Millisecond})
	d.arrive(0, 100, 1000, 3)
	run := func(to clock.Time) {
		for now := d.Deadline(); now <= to; now = max(now+1, d.Deadline()) {
			d.Advance(now)
			for d.FlowControl().Ready(now) {
				d.FlowControl().Append(now, nil)
			}
		}
	}
	d.Advance(0)
	run(micro(9_900))
	if d.Stalls().Minor != 0 || d.FlowControl().Told() != 1<<3|1<<4 {
		t.Fatalf("%+v, told %b", d.Stalls(), d.FlowControl().Told())
	}
	run(micro(19_900))
	if s := d.Stalls(); s.Minor != 1 || s.Critical != 0 {
		t.Fatalf("%+v", s)
	}
	run(micro(60_000))
	if s := d.Stalls(); s.Minor != 1 || s.Critical != 1 || !d.Stalled() || d.FlowControl().Told() != 0 || d.lossless() != 0 {
		t.Fatalf("%+v, told %b", s, d.FlowControl().Told())
	}
	d.SetFlowControl(micro(60_001), d.w, pause.Config{Asks: pause.Only(1 << 3)}) // counts when something is taken
	if d.FlowControl().Config().Asks.Priorities != 0 {
		t.Error("flow control is on while the path stands still")
	}
	d.f.receives = 1
	run(micro(61_000))
	if d.Stalled() || d.FlowControl().Told() != 1<<3 {
		t.Errorf("told %b", d.FlowControl().Told())
	}
	run(micro(90_000))
	if s := d.Stalls(); s.Minor != 2 || s.Critical != 2 {
		t.Errorf("the next stall: %+v", s)
	}
}

// TestLifetime: a packet at the head of a class with a limit is lost when it has been there for too long, the next begins anew, and after
// several in a row all are lost for eight lifetimes; a class without a limit waits (IBA 18.2.5.4).
func TestLifetime(t *testing.T) {
	var p Port
	w := &Wire{}
	f := &queues{due: clock.Never}
	p.Attach(f, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}, Kind: Ethernet}).Plug(w, netip.Addr{}, nil)
	var traffic Traffic
	traffic.Class[3] = 1
	if err := p.Scheduler.SetTraffic(0, traffic); err != nil {
		t.Fatal(err)
	}
	limit := HeadLifetime(8) // 1.05 ms
	if err := p.SetLifetime(Lifetime{Classes: 1 << 1, Limit: limit, StallCount: 2}); err != nil {
		t.Fatal(err)
	}
	r := &frame.Route{}
	f.out[3], f.out[5] = many(1000, r), many(10, r)
	p.Scheduler.Pause(1<<3 | 1<<5)
	out := make([]frame.Out, 8)
	run := func(to clock.Time) {
		for now := p.Deadline(); now <= to; now = max(now+1, p.Deadline()) {
			if p.Transmit(now, out) != 0 {
				t.Fatal("something leaves in a pause")
			}
		}
	}
	p.Transmit(0, out)
	run(clock.Time(limit - 1))
	if n := p.Discarded()[3]; n != 0 {
		t.Fatalf("%d are lost before their time", n)
	}
	run(clock.Time(limit + 10))
	if n := p.Discarded(); n[3] != 1 || n[5] != 0 {
		t.Fatalf("lost %v", n)
	}
	run(clock.Time(2*limit + 100)) // the second in a row
	run(clock.Time(3 * limit))
	if n := p.Discarded(); n[3] < 100 || len(f.out[5]) != 10 {
		t.Errorf("lost %v of a class that stands still", n)
	}
	if HeadLifetime(20) != 0 || HeadLifetime(0) != 4096*time.Nanosecond {
		t.Error("lifetimes are not InfiniBand's")
	}
}

// TestDropless_Untagged: frames that name no priority wait with the lossless ones, and make the port ask for pauses, if they are to be
// lossless (RxUntaggedMapToLossless); else they have the room of the lossy ones. A tag, or a DSCP that is trusted, decides in any case.
func TestDropless_Untagged(t *testing.T) {
	untagged := ethernetTo(eth.MAC{2, 0, 0, 0, 0, 1}, 0, 1000)
	tagged := ethernetTo(eth.MAC{2, 0, 0, 0, 0, 1}, 1<<13|1, 1000)
	packet := slices.Clone(untagged)
	packet[12], packet[13], packet[15] = 8, 0, 2<<5 // IPv4 with a DSCP of priority 2
	for _, x := range []struct {
		name  string
		c     qos.Classifier
		asks  uint8
		frame []byte
		want  uint8
	}{
		{"as it is by default", qos.Classifier{}, 1<<3 | 1<<5, untagged, 0},
		{"lossless", qos.Classifier{Lossless: true}, 1<<3 | 1<<5, untagged, 3},
		{"lossless, as its own priority is", qos.Classifier{Lossless: true, Untagged: 5}, 1<<3 | 1<<5, untagged, 5},
		{"nothing is lossless", qos.Classifier{Lossless: true}, 0, untagged, 0},
		{"a tag", qos.Classifier{Lossless: true}, 1 << 3, tagged, 1},
		{"a DSCP that is not trusted", qos.Classifier{Lossless: true}, 1 << 3, packet, 3},
		{"a DSCP that is", qos.Classifier{Lossless: true, ByDSCP: true}, 1 << 3, packet, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := newDropless(Forever, pause.Only(x.asks))
			d.Classifier = x.c
			if got := d.stations[0].Priority(x.frame); got != x.want {
				t.Errorf("kept in a ring as of priority %d, want %d", got, x.want)
			}
			const n = 2 * lossyRoom / 1000
			for range n {
				d.Receive(0, d.w, []frame.In{{Data: slices.Clone(x.frame), Raw: true}})
			}
			d.Advance(0)
			lossless := x.asks>>x.want&1 != 0
			if lost := d.Overruns(); (lost[x.want] == 0) != lossless || d.backlog.bytes[x.want] == 0 {
				t.Errorf("lost %v, %d bytes wait at priority %d", lost, d.backlog.bytes[x.want], x.want)
			}
			if d.asks() != lossless {
				t.Errorf("asks for a pause: %v", d.asks())
			}
		})
	}
}

// asks reports whether the port has a pause frame to send.
func (d *dropless) asks() bool { return d.FlowControl() != nil && d.FlowControl().Ready(0) }
