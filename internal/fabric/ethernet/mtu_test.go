package ethernet

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

// TestMTU: a port takes no packet that is longer than its limit, and sends none; each is counted at the port whose limit it was. A tag
// does not count. What the limit is changes from the next frame on.
func TestMTU(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{MTU: 4000, Limit: 2000, PVID: 1, Tagged: vlans(5)},
		PortConfig{MTU: 4000, Limit: 1500, PVID: 1, Tagged: vlans(5)}, PortConfig{MTU: 4000})
	frame := func(from, to byte, tag bool, n int) []byte {
		e := eth.Ethernet{Dst: stationMAC(to), Src: stationMAC(from), Type: eth.TypeIPv4}
		if !tag {
			return append(e.Append(nil), make([]byte, n)...)
		}
		e.Type = eth.TypeVLAN
		return append(append(e.Append(nil), 0, 5, byte(eth.TypeIPv4>>8), byte(eth.TypeIPv4&0xff)), make([]byte, n)...)
	}
	for port := range 3 { // each address is known where it is
		r.sw.Receive(r.now, port, r.store.Put(frame(byte(port+1), 9, false, 50), 0))
		if port < 2 {
			r.sw.Receive(r.now, port, r.store.Put(frame(byte(port+1), 9, true, 50), 0))
		}
	}
	r.drive(r.now + 10*microsecond)
	check := func(what string, in int, b []byte, out int, dropped [3]uint64) {
		t.Helper()
		var before [3]uint64
		for i := range before {
			before[i] = r.sw.Port(i).Counters(r.now).Dropped.TooLong
			r.left(i)
		}
		r.sw.Receive(r.now, in, r.store.Put(b, 0))
		r.drive(r.now + 10*microsecond)
		for i := range before {
			if n := r.sw.Port(i).Counters(r.now).Dropped.TooLong - before[i]; n != dropped[i] {
				t.Errorf("%s: port %d counts %d, want %d", what, i, n, dropped[i])
			}
			if n := len(r.left(i)); (n == 1) != (i == out) {
				t.Errorf("%s: %d frames leave by port %d", what, n, i)
			}
		}
	}
	check("as long as may be", 0, frame(1, 2, false, 1500), 1, [3]uint64{})
	check("as long as may be, with a tag", 0, frame(1, 2, true, 1500), 1, [3]uint64{})
	check("longer than the port sends", 0, frame(1, 2, false, 1501), -1, [3]uint64{0, 1, 0})
	check("longer than the port sends, with a tag", 0, frame(1, 2, true, 1501), -1, [3]uint64{0, 1, 0})
	check("to another port", 0, frame(1, 3, false, 2000), 2, [3]uint64{})
	check("longer than the port takes", 0, frame(1, 3, false, 2001), -1, [3]uint64{1, 0, 0})
	check("to all, where one does not send it", 0, frame(1, 77, false, 1600), 2, [3]uint64{0, 1, 0})
	if err := r.sw.Port(1).SetMTU(1600); err != nil {
		t.Fatal(err)
	}
	check("longer, after the change", 0, frame(1, 2, false, 1600), 1, [3]uint64{})
	for _, wrong := range []int{-1, 0, 575, 4001} {
		var field *FieldError
		if err := r.sw.Port(1).SetMTU(wrong); !errors.As(err, &field) || field.Want != "576 to 4000" {
			t.Errorf("an MTU of %d: %v", wrong, err)
		}
	}
	r.idle()
}
