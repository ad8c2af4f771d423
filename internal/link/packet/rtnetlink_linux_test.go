package packet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func word(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

// with returns a message's fixed part followed by attributes.
func with(fixed []byte, attributes ...[]byte) []byte {
	b := request(nil, 0, 0, fixed)
	for i := 0; i < len(attributes); i += 2 {
		b = attribute(b, binary.NativeEndian.Uint16(attributes[i]), attributes[i+1])
	}
	return b[unix.SizeofNlMsghdr:]
}

func kind(k uint16) []byte { return binary.NativeEndian.AppendUint16(nil, k) }

func routeMessage(typ byte, attributes ...[]byte) []byte {
	var fixed [unix.SizeofRtMsg]byte
	fixed[7] = typ
	return with(fixed[:], attributes...)
}

func TestParseRoute(t *testing.T) {
	gateway := netip.MustParseAddr("192.0.2.254")
	for _, c := range []struct {
		name string
		body []byte
		want route
		ok   bool
	}{
		{"a neighbour", routeMessage(unix.RTN_UNICAST, kind(unix.RTA_OIF), word(7)), route{netip.Addr{}, 7, true}, true},
		{"behind a router", routeMessage(unix.RTN_UNICAST, kind(unix.RTA_OIF), word(7), kind(unix.RTA_GATEWAY), gateway.AsSlice()), route{gateway, 7, true}, true},
		{"behind a router of another family", routeMessage(unix.RTN_UNICAST, kind(unix.RTA_VIA), append([]byte{unix.AF_INET6, 0}, v6a.AsSlice()...), kind(unix.RTA_OIF), word(7)), route{v6a, 7, true}, true},
		{"this host", routeMessage(unix.RTN_LOCAL, kind(unix.RTA_OIF), word(1)), route{netip.Addr{}, 1, false}, true},
		{"in a tunnel", routeMessage(unix.RTN_UNICAST, kind(unix.RTA_OIF), word(7), kind(unix.RTA_ENCAP), nil), route{netip.Addr{}, 7, false}, true},
		{"by no interface", routeMessage(unix.RTN_UNREACHABLE), route{}, false},
		{"cut off", make([]byte, unix.SizeofRtMsg-1), route{}, false},
	} {
		if got, ok := parseRoute(c.body); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestParseNeighbour(t *testing.T) {
	mac := [6]byte{2, 0, 0, 0, 0, 9}
	message := func(state uint16, mac []byte) []byte {
		var fixed [unix.SizeofNdMsg]byte
		binary.NativeEndian.PutUint32(fixed[4:], 7)
		binary.NativeEndian.PutUint16(fixed[8:], state)
		return with(fixed[:], kind(unix.NDA_DST), v4b.AsSlice(), kind(unix.NDA_LLADDR), mac)
	}
	for _, c := range []struct {
		name  string
		body  []byte
		gone  bool
		valid bool
	}{
		{"reachable", message(unix.NUD_REACHABLE, mac[:]), false, true},
		{"stale: used, and looked for", message(unix.NUD_STALE, mac[:]), false, true},
		{"permanent", message(unix.NUD_PERMANENT, mac[:]), false, true},
		{"looked for", message(unix.NUD_INCOMPLETE, nil), false, false},
		{"failed", message(unix.NUD_FAILED, mac[:]), false, false},
		{"removed", message(unix.NUD_REACHABLE, mac[:]), true, false},
		{"of another kind of address", message(unix.NUD_REACHABLE, make([]byte, 20)), false, false},
	} {
		n, ok := parseNeighbour(c.body, c.gone)
		if !ok || n.addr != v4b || n.out != 7 || n.valid != c.valid || c.valid && n.mac != mac {
			t.Errorf("%s: read as %+v, %v", c.name, n, ok)
		}
	}
}

// TestRequests: the requests have the form and attributes that rtnetlink(7) describes.
func TestRequests(t *testing.T) {
	b := askRoute(nil, v4a, v4b, 0xc001, 4791, 7)
	k, body, rest := nextMessage(b)
	if k != unix.RTM_GETROUTE || len(rest) != 0 || body[0] != unix.AF_INET || body[1] != 32 || body[2] != 32 {
		t.Fatalf("request %x, want one RTM_GETROUTE for IPv4 addresses of 32 bits", b)
	}
	want := map[uint16][]byte{unix.RTA_DST: v4b.AsSlice(), unix.RTA_SRC: v4a.AsSlice(), unix.RTA_IP_PROTO: {17}, unix.RTA_SPORT: {0xc0, 1}, unix.RTA_DPORT: {0x12, 0xb7}}
	n := 0
	for a := body[unix.SizeofRtMsg:]; ; n++ {
		k, v, r, ok := nextAttribute(a)
		if !ok {
			break
		}
		if !bytes.Equal(v, want[k]) {
			t.Errorf("attribute %d is %x, want %x", k, v, want[k])
		}
		a = r
	}
	if n != len(want) {
		t.Errorf("%d attributes, want %d", n, len(want))
	}
}

// FuzzNetlink: whatever the kernel's answer contains, reading it ends and stays within its bytes.
func FuzzNetlink(f *testing.F) {
	f.Add(askRoute(nil, v4a, v4b, 1, 2, 3))
	f.Add(askNeighbour(nil, v6a, 1))
	f.Add(askDevice(nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		for {
			_, body, rest := nextMessage(b)
			if body == nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("reading a message made no progress")
			}
			if r, ok := parseRoute(body); ok && r.out == 0 {
				t.Error("a route without an interface")
			}
			if n, ok := parseNeighbour(body, false); ok && !n.addr.IsValid() {
				t.Error("a neighbour without an address")
			}
			_, _ = parseDevice(body)
			_, _ = parseQdisc(body)
			b = rest
		}
	})
}
