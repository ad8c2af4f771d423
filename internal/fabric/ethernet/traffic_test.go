package ethernet

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// packet describes a frame of the tests: UDP over IPv4, with a serial number behind the headers.
type packet struct {
	from, to byte // stations: last bytes of MACs and addresses
	port     uint16
	class    uint8 // type of service
	vlan     uint16
	pcp      uint8
	tagged   bool
	gateway  eth.MAC // in place of the station's
	hops     uint8
	serial   uint32
	length   int // of the whole frame; what is behind its first 64 bytes is not kept
}

func stationMAC(n byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 1, n} }

// headers is how much of the frames of the tests is kept.
const headers = 64

func (x packet) bytes() []byte {
	h := eth.Ethernet{Dst: stationMAC(x.to), Src: stationMAC(x.from), Type: eth.TypeIPv4, Tagged: x.tagged, TCI: uint16(x.pcp)<<13 | x.vlan}
	if x.gateway != (eth.MAC{}) {
		h.Dst = x.gateway
	}
	if x.hops == 0 {
		x.hops = 64
	}
	b := make([]byte, headers)
	h.Put(b)
	ip := eth.IPv4(b[h.Len():])
	ip.Encode(x.class, max(x.length, headers)-h.Len(), 0, x.hops, eth.ProtocolUDP, [4]byte{10, 0, 0, x.from}, [4]byte{10, 0, 0, x.to})
	binary.BigEndian.PutUint16(ip[20:], x.port)
	binary.BigEndian.PutUint16(ip[22:], 4791)
	binary.BigEndian.PutUint32(b[headers-4:], x.serial)
	return b
}

func (x packet) put(s *Store) Ref { return s.Put(x.bytes(), max(x.length-headers, 0)) }

// serial returns that of a frame without tag, and the station from which it comes.
func serial(b []byte) (from byte, n uint32) { return b[29], binary.BigEndian.Uint32(b[len(b)-4:]) }

// rig is one switch whose ports nobody drives but the test.
type rig struct {
	t      testing.TB
	store  Store
	sw     *Switch
	now    clock.Time
	out    []Departure
	prompt bool // it gives back the room of what has left although it makes no difference yet
}

func newRig(t testing.TB, cfg Config, ports ...PortConfig) *rig {
	t.Helper()
	r := &rig{t: t}
	var err error
	if r.sw, err = New(&r.store, cfg, ports); err != nil {
		t.Fatal(err)
	}
	return r
}

// receive brings a frame to a port now.
func (r *rig) receive(port int, x packet) { r.sw.Receive(r.now, port, x.put(&r.store)); r.drive(r.now) }

// control brings a pause to a port now.
func (r *rig) control(port int, p eth.Pause) {
	r.sw.Receive(r.now, port, r.store.Put(p.Append(nil), 0))
	r.drive(r.now)
}

// drive lets happen what is due until a time.
func (r *rig) drive(until clock.Time) {
	for at := r.sw.Deadline(); at <= until; at = r.sw.Deadline() {
		r.giveBack(at)
		r.sw.Advance(at)
		r.take()
	}
	r.take()
	r.giveBack(until)
	r.now = until
}

// giveBack gives back the room of all frames that have left before a time, if the rig is prompt.
func (r *rig) giveBack(now clock.Time) {
	if r.prompt {
		r.sw.settle(now, 0)
	}
}

func (r *rig) take() {
	var d [3]Departure
	for n := r.sw.Take(d[:]); n > 0; n = r.sw.Take(d[:]) {
		r.out = append(r.out, d[:n]...)
	}
}

// left returns the frames that have left by a port since the last call, with what the store keeps of them.
func (r *rig) left(port int) (all [][]byte) {
	rest := r.out[:0]
	for _, d := range r.out {
		if d.Port != port {
			rest = append(rest, d)
			continue
		}
		all = append(all, r.store.Append(nil, d.Frame))
		r.store.Drop(d.Frame)
	}
	r.out = rest
	return all
}

// idle checks that nothing is left in the switch.
func (r *rig) idle() {
	r.t.Helper()
	for i := range r.sw.Ports() {
		r.left(i)
	}
	if u := r.sw.Usage(r.now); u.Used != 0 || u.Headroom != 0 || r.store.Frames() != 0 {
		r.t.Errorf("%+v is used, and %d frames are there, want none", u, r.store.Frames())
	}
}

func field(err error) string {
	var f *FieldError
	if !errors.As(err, &f) {
		return ""
	}
	return f.Field
}

const microsecond = clock.Time(time.Microsecond)
