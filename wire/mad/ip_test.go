package mad

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"
)

func TestIPHeaderLayout(t *testing.T) {
	for _, c := range []struct {
		src, dst, want string
	}{
		{"10.0.0.1:7471", "10.0.0.2", "00401d2f" + "0000000000000000000000000a000001" + "0000000000000000000000000a000002"},
		{"[2001:db8::1]:1", "2001:db8::2", "00600001" + "20010db8000000000000000000000001" + "20010db8000000000000000000000002"},
	} {
		h := IPHeader{netip.MustParseAddrPort(c.src), netip.MustParseAddr(c.dst)}
		b := h.Append(nil)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("%v is\n%s, want\n%s", h, got, c.want)
		}
		if got, err := ParseIPHeader(b); err != nil || got != h {
			t.Errorf("%v reads back as %v, %v", h, got, err)
		}
	}
}

func TestIPHeaderRefuses(t *testing.T) {
	good := IPHeader{}.Append(nil)
	for field, b := range map[string][]byte{
		"private data length":    good[:35],
		"IP CM major version":    append([]byte{0x10}, good[1:]...),
		"IP version":             append([]byte{0, 0x50}, good[2:]...),
		"private data length ":   nil,
		"IP CM major version ":   bytes.Repeat([]byte{0xff}, 36),
		"IP version (of zeroes)": make([]byte, 36),
	} {
		var e *Error
		if _, err := ParseIPHeader(b); !errors.As(err, &e) || !bytes.HasPrefix([]byte(field), []byte(e.Field)) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestServiceIDs(t *testing.T) {
	if got := ServiceID(PortSpaceTCP, 7471); got != 0x0000000001061d2f {
		t.Errorf("TCP port 7471 is %#x", got)
	}
	for _, c := range []struct {
		id    uint64
		space PortSpace
		port  uint16
		ok    bool
	}{
		{0x0000000001061d2f, PortSpaceTCP, 7471, true}, {0x000000000111ffff, PortSpaceUDP, 65535, true},
		{0x00000000013f0001, PortSpaceIB, 1, true}, {0x0000000001020001, 0, 0, false}, {0x0000000101060001, 0, 0, false}, {0, 0, 0, false},
	} {
		space, port, ok := ParseServiceID(c.id)
		if ok != c.ok || ok && (space != c.space || port != c.port) {
			t.Errorf("%#x: %#x, %d, %v", c.id, space, port, ok)
		}
	}
}

func FuzzIPHeader(f *testing.F) {
	f.Add(IPHeader{netip.MustParseAddrPort("10.0.0.1:7471"), netip.MustParseAddr("10.0.0.2")}.Append(nil))
	f.Add(IPHeader{netip.MustParseAddrPort("[::ffff:10.0.0.1]:7471"), netip.MustParseAddr("::1")}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseIPHeader(b)
		if err != nil {
			return
		}
		if again, err := ParseIPHeader(h.Append(nil)); err != nil || again != h {
			t.Fatalf("%v reads back as %v, %v", h, again, err)
		}
	})
}
