package packetdirect_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/packetdirect"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/eth"
)

// datagramTo makes a frame of UDP from a port, over IPv4 or IPv6, and returns what its hash is over.
func datagramTo(dst [6]byte, port uint16, ipv6 bool) (f, in []byte) {
	src := [6]byte{2, 0, 0, 0, 8, 9}
	f = append(append(f, dst[:]...), src[:]...)
	if ipv6 {
		f = append(f, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 16, 17, 64, 0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
			0xfd, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2)
		in = bytes.Clone(f[22:54])
	} else {
		f = append(f, 8, 0, 0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 81, 0, 1, 10, 81, 0, 2)
		in = bytes.Clone(f[26:34])
	}
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, port), 7)
	f = append(append(f, ports...), 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	if n := 60 - len(f); n > 0 {
		f = append(f, make([]byte, n)...)
	}
	return f, append(in, ports...)
}

// TestSpread: the frames of a flow are in the queue that the table has for its hash, which the buffer has; another table is for those
// to come; frames that are no IP are for the first entry, and what needs a spread's queues closed is refused.
func TestSpread(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		queues := []*packetdirect.ReceiveQueue{}
		for range 3 {
			queues = append(queues, receives(t, to, 64).ReceiveQueue)
		}
		s := must(to.NewSpread(packetdirect.SpreadConfig{Queues: queues}))(t)
		steering := must(s.AddFilter(packetdirect.Filter{Dst: to.MAC()}))(t)
		wantErr(t, queues[0].Close(), verbs.ErrBusy)
		tx := must(from.NewTransmitQueue(packetdirect.QueueConfig{}))(t)
		pool := must(from.NewPool(1, 0))(t)
		hash := rss.NewToeplitz(&rss.DefaultKey)
		table := make([]int, 128)
		for i := range table {
			table[i] = i % 3
		}
		one := make([]*packetdirect.Buffer, 1)
		gets := func(f []byte, want int, sum uint32) {
			t.Helper()
			pool.Buffers()[0].Set(f)
			_, _, err := tx.PostAndDrain(pool.Buffers(), nil)
			ok(t, err)
			ok(t, queues[want].Wait(testbed.Context(t)))
			_, n, err := queues[want].PostAndDrain(nil, one)
			ok(t, err)
			if n != 1 || !bytes.Equal(one[0].Bytes(), f) || one[0].Hash() != sum {
				t.Fatalf("queue %d has %d frames, hash %#x, want %#x", want, n, one[0].Hash(), sum)
			}
			_, _, err = queues[want].PostAndDrain(one, nil)
			ok(t, err)
			ok(t, tx.Wait(testbed.Context(t)))
			_, _, err = tx.PostAndDrain(nil, one)
			ok(t, err)
		}
		for _, which := range []string{"the first table", "another"} {
			for port := range uint16(20) {
				f, in := datagramTo(to.MAC(), 1000+13*port, port%2 == 0)
				sum := hash.Sum(in)
				gets(f, table[sum&uint32(len(table)-1)], sum)
			}
			gets(append(frame(to.MAC(), from.MAC(), 60)[:12], append([]byte{0x88, 0xb6}, make([]byte, 46)...)...), table[0], 0)
			if table = []int{2, 0}; which == "the first table" {
				ok(t, s.SetTable(table))
			}
		}
		if c := must(steering.Counters())(t); c.Frames != 42 {
			t.Errorf("the filter counts %+v, want 42 frames", c)
		}
		for _, bad := range [][]int{nil, {3}, {-1}, {0, 1, 2}, make([]int, 256)} {
			wantErr(t, s.SetTable(bad), verbs.ErrInvalid)
		}
		ok(t, s.Close())
		ok(t, s.Close())
		_, err := s.AddFilter(packetdirect.Filter{})
		wantErr(t, err, verbs.ErrClosed)
		ok(t, queues[0].Close())
		for _, bad := range []packetdirect.SpreadConfig{{}, {Queues: []*packetdirect.ReceiveQueue{nil}},
			{Queues: queues[1:], Table: []int{2}}, {Queues: queues[1:], Fields: 1 << 20}} {
			if _, err := to.NewSpread(bad); err == nil {
				t.Errorf("%+v is accepted", bad)
			}
		}
		must(to.NewSpread(packetdirect.SpreadConfig{Queues: queues[1:]}))(t) // which ends with the adapter
	})
}

// segmentHead returns the headers of a large packet of TCP.
func segmentHead(dst, src [6]byte) []byte {
	head := append(append(dst[:], src[:]...), 8, 0, 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 6, 0, 0, 10, 81, 0, 1, 10, 81, 0, 2)
	return append(head, 0, 7, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0)
}

// TestLarge: a large packet of TCP arrives as frames whose data is its own, with right checksums; counters say what left.
func TestLarge(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		rx := receives(t, to, 16, packetdirect.Filter{Dst: to.MAC(), Protocol: 6})
		tx := must(from.NewTransmitQueue(packetdirect.QueueConfig{Large: true}))(t)
		pool := must(from.NewPool(2, 1<<16))(t)
		head := segmentHead(to.MAC(), from.MAC())
		data := bytes.Repeat([]byte("some data, "), 500)
		large, small := pool.Buffers()[0], pool.Buffers()[1]
		copy(large.Room()[copy(large.Room(), head):], data)
		large.SetLarge(len(head)+len(data), len(head), 1400)
		plain := frame(to.MAC(), from.MAC(), 64)
		small.Set(plain)
		_, _, err := tx.PostAndDrain(pool.Buffers(), nil)
		ok(t, err)
		var got []byte
		some := make([]*packetdirect.Buffer, 8)
		frames := 0
		for len(got) < len(data) {
			ok(t, rx.Wait(testbed.Context(t)))
			_, n, err := rx.PostAndDrain(nil, some)
			ok(t, err)
			for _, b := range some[:n] {
				var h eth.Headers
				f := b.Bytes()
				if !h.Parse(f) || offload.Check(&h, f) != offload.GoodIP|offload.GoodTransport || !b.GoodChecksums() {
					t.Errorf("a segment's checksums are wrong: %x", f[:54])
				}
				if seq := binary.BigEndian.Uint32(f[38:]); int(seq) != len(got) {
					t.Errorf("segment %d has sequence number %d", len(got), seq)
				}
				got = append(got, f[h.Data:h.End]...)
				frames++
			}
		}
		if !bytes.Equal(got, data) || frames != 4 {
			t.Errorf("%d frames with %d bytes arrive", frames, len(got))
		}
		drained := 0
		for drained < 2 {
			ok(t, tx.Wait(testbed.Context(t)))
			_, n, err := tx.PostAndDrain(nil, some)
			ok(t, err)
			drained += n
		}
		want := uint64(len(data) + 4*len(head) + 64)
		if c := tx.Counters(); c.Frames != 5 || c.Bytes != want || c.Errors != 0 {
			t.Errorf("the queue counts %+v, want 5 frames of %d bytes", c, want)
		}
		for what, c := range map[string][3]int{
			"no headers": {5000, 0, 1000}, "other headers": {5000, 20, 1000}, "long headers": {5000, 129, 1000}, "no segment": {5000, 54, 0},
			"long segments": {5000, 54, 1500}, "many segments": {5000, 54, 1}, "nothing but a part of headers": {40, 54, 1000},
		} {
			large.SetLarge(c[0], c[1], c[2])
			if _, _, err := tx.PostAndDrain(pool.Buffers()[:1], nil); !errors.Is(err, verbs.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		large.SetLarge(5000, 54, 1000)
		plainQueue := must(from.NewTransmitQueue(packetdirect.QueueConfig{}))(t)
		_, _, err = plainQueue.PostAndDrain(pool.Buffers()[:1], nil)
		wantErr(t, err, verbs.ErrInvalid)
		large.Set(plain) // an ordinary frame again
		_, _, err = plainQueue.PostAndDrain(pool.Buffers()[:1], nil)
		ok(t, err)
	})
}
