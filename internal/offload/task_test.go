package offload

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// framed puts an Ethernet header with a tag before an IP packet.
func framed(p []byte) []byte {
	t := eth.TypeIPv4
	if p[0]>>4 == 6 {
		t = eth.TypeIPv6
	}
	h := eth.Ethernet{Dst: eth.MAC{2}, Src: eth.MAC{4}, Tagged: true, TCI: 9, Type: t}
	return append(h.Append(nil), p...)
}

// TestTask: what a header of the system says becomes a Task, and that the same header.
func TestTask(t *testing.T) {
	h, p := large(false, 1, flagACK, nil, make([]byte, 3000), 1000)
	e := headersOf(p)
	task, err := h.Task(e)
	if want := (Task{Segment: 1000, Kind: TCPv4, Sums: MakeTransport}); err != nil || task != want {
		t.Errorf("%+v, %v, want %+v", task, err, want)
	}
	if back := task.Header(e); back != h {
		t.Errorf("%+v comes back as %+v", h, back)
	}
	for name, c := range map[string]struct {
		h     Header
		want  Task
		wrong bool
	}{
		"whole":                   {Header{}, Task{}, false},
		"right":                   {Header{ChecksumValid: true}, Task{Sums: GoodTransport}, false},
		"to be made":              {Header{NeedsChecksum: true, ChecksumStart: 20, ChecksumAt: 16}, Task{Sums: MakeTransport}, false},
		"elsewhere":               {Header{NeedsChecksum: true, ChecksumStart: 20, ChecksumAt: 6}, Task{}, true},
		"beyond the packet":       {Header{NeedsChecksum: true, ChecksumStart: 65535, ChecksumAt: 16}, Task{}, true},
		"of another IP version":   {Header{Kind: TCPv6, Segment: 9}, Task{}, true},
		"segments without a size": {Header{Kind: TCPv4}, Task{}, true},
	} {
		if got, err := c.h.Task(e); got != c.want || (err != nil) != c.wrong {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestOnWire: a frame of several segments counts as the frames that it is cut into, with headers of their own and filled up; one
// that is not to be cut, or cannot be, as itself.
func TestOnWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		b := framed(tcpPacket(v6, 1, flagACK, nil, make([]byte, rapid.IntRange(1, 5000).Draw(t, "payload"))))
		task := Task{Kind: TCPv4, Segment: uint16(rapid.IntRange(1, 1460).Draw(t, "segment")), Sums: MakeTransport}
		if v6 {
			task.Kind = TCPv6
		}
		var h eth.Headers
		h.Parse(b)
		var s Segments
		if err := s.BeginFrame(task, &h, b); err != nil {
			t.Fatal(err)
		}
		var frames, bytes int
		for head, body, ok := s.Next(); ok; head, body, ok = s.Next() {
			frames, bytes = frames+1, bytes+max(60, len(head)+len(body))
		}
		if f, n := task.OnWire(b[:h.Data], len(b)); f != frames || n != bytes {
			t.Fatalf("%d frames of %d bytes, want %d of %d", f, n, frames, bytes)
		}
		if f, n := (Task{Sums: MakeTransport}).OnWire(b, len(b)); f != 1 || n != len(b) {
			t.Fatalf("whole: %d frames of %d bytes", f, n)
		}
		if f, n := task.OnWire(b[:14], len(b)); f != 1 || n != len(b) {
			t.Fatalf("without headers: %d frames of %d bytes", f, n)
		}
	})
}

// TestMake: the checksums that are left to be made are those that a check finds right, twice as well as once, in one piece and
// in two.
func TestMake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		b := framed(tcpPacket(v6, 1, flagACK, nil, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")))
		var h eth.Headers
		h.Parse(b)
		want := bytes.Clone(b)
		binary.BigEndian.PutUint16(b[h.Transport+tcpChecksum:], rapid.Uint16().Draw(t, "what was there"))
		if !v6 {
			eth.IPv4(b[h.Network:]).PutChecksum(1)
		}
		apart := bytes.Clone(b)
		Make(MakeIP|MakeTransport, &h, b)
		Make(MakeIP|MakeTransport, &h, b)
		MakeApart(MakeIP|MakeTransport, &h, apart[:h.Data], apart[h.Data:])
		if !bytes.Equal(b, want) || !bytes.Equal(apart, want) {
			t.Fatalf("%x\n%x\nwant %x", b, apart, want)
		}
		good := GoodTransport
		if !v6 {
			good |= GoodIP
		}
		if got := Check(&h, b); got != good {
			t.Fatalf("found %b", got)
		}
	})
}

// TestJoiner_ManyFlows: more connections than a joiner keeps open are passed on all the same, and counted.
func TestJoiner_ManyFlows(t *testing.T) {
	var j Joiner
	j.Join4 = true
	const flows = mostFlows + 3
	for part := range uint32(2) {
		for f := range flows {
			b := framed(tcpPacket(false, 1+10*part, flagACK, nil, make([]byte, 10)))
			var h eth.Headers
			h.Parse(b)
			binary.BigEndian.PutUint16(b[h.Transport:], uint16(f))
			j.AddFrame(&h, b, Task{Sums: GoodIP | GoodTransport}, uint32(f), 7)
		}
	}
	segments := 0
	for _, p := range j.Packets() {
		segments += len(p.Parts)
		if p.Note != 7 {
			t.Errorf("note %d", p.Note)
		}
	}
	if segments != 2*flows || j.Aborts() == 0 {
		t.Errorf("%d segments come out, want %d; %d aborts", segments, 2*flows, j.Aborts())
	}
}

// TestJoiner_Group: frames to a group are not joined: others have the same memory.
func TestJoiner_Group(t *testing.T) {
	j := Joiner{Join4: true}
	for part := range uint32(2) {
		b := framed(tcpPacket(false, 1+10*part, flagACK, nil, make([]byte, 10)))
		b[0] = 1
		var h eth.Headers
		h.Parse(b)
		j.AddFrame(&h, b, Task{Sums: GoodIP | GoodTransport}, 0, 0)
	}
	if n := len(j.Packets()); n != 2 {
		t.Errorf("%d packets, want 2", n)
	}
}
