package eth

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wrong checks that err is a typed error about field.
func wrong(t *testing.T, name string, err error, field string) {
	t.Helper()
	var l *LengthError
	var f *FieldError
	switch {
	case errors.As(err, &l) && l.What == field:
	case errors.As(err, &f) && f.Field == field:
	default:
		t.Errorf("%s: %v, want an error about %q", name, err, field)
	}
}

func draw4(t *rapid.T, name string) netip.Addr {
	return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, name)))
}

func draw6(t *rapid.T, name string) netip.Addr {
	return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name)))
}

func TestEthernetReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Ethernet{Dst: MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "dst")),
			Src:    MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "src")),
			Tagged: rapid.Bool().Draw(t, "tagged"),
			Type:   EtherType(rapid.Uint16().Filter(func(v uint16) bool { return v != uint16(TypeVLAN) }).Draw(t, "type"))}
		if h.Tagged {
			h.TCI = rapid.Uint16().Draw(t, "tci")
		}
		payload := rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
		b := append(h.Append(nil), payload...)
		got, rest, err := ParseEthernet(b)
		if err != nil || got != h || !bytes.Equal(rest, payload) || len(b) != h.Len()+len(payload) {
			t.Fatalf("%+v reads back as %+v, % x, %v", h, got, rest, err)
		}
	})
}

func TestEthernetLayout(t *testing.T) {
	h := Ethernet{Dst: MAC{1, 2, 3, 4, 5, 6}, Src: MAC{7, 8, 9, 10, 11, 12}, Tagged: true, TCI: 5<<13 | 100, Type: TypeRoCEv1}
	if got := hex.EncodeToString(h.Append(nil)); got != "0102030405060708090a0b0c8100a0648915" {
		t.Errorf("tagged: %s", got)
	}
	h.Tagged = false
	if got := hex.EncodeToString(h.Append(nil)); got != "0102030405060708090a0b0c8915" {
		t.Errorf("untagged: %s", got)
	}
	_, _, err := ParseEthernet(make([]byte, 13))
	wrong(t, "13 bytes", err, "ethernet header")
	_, _, err = ParseEthernet(unhex(t, "0102030405060708090a0b0c8100a06489"))
	wrong(t, "half a tag", err, "vlan tag")
	if got := h.Dst.String(); got != "01:02:03:04:05:06" {
		t.Errorf("MAC is %s", got)
	}
}

// RFC 1112 6.4 and RFC 2464 7.
func TestMulticastMAC(t *testing.T) {
	for addr, want := range map[string]string{
		"239.129.2.3": "01:00:5e:01:02:03", "224.0.0.1": "01:00:5e:00:00:01", "ff02::1:ff00:1234": "33:33:ff:00:12:34",
	} {
		if m, ok := MulticastMAC(netip.MustParseAddr(addr)); !ok || m.String() != want {
			t.Errorf("%s is %v, %v, want %s", addr, m, ok, want)
		}
	}
	if _, ok := MulticastMAC(netip.MustParseAddr("10.0.0.1")); ok {
		t.Error("10.0.0.1 is no group")
	}
}

func TestARP(t *testing.T) {
	a := ARP{Operation: ARPReply, SenderMAC: MAC{1, 2, 3, 4, 5, 6}, TargetMAC: MAC{7, 8, 9, 10, 11, 12},
		SenderIP: netip.MustParseAddr("10.0.0.1"), TargetIP: netip.MustParseAddr("10.0.0.2")}
	b := a.Append(nil)
	if got := hex.EncodeToString(b); got != "0001080006040002"+"0102030405060a000001"+"0708090a0b0c0a000002" {
		t.Errorf("%s", got)
	}
	if got, err := ParseARP(append(b, 0, 0)); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := ParseARP(b[:27])
	wrong(t, "short", err, "arp packet")
	for at, field := range map[int]string{1: "arp hardware type", 3: "arp protocol type", 4: "arp address lengths",
		5: "arp address lengths"} {
		c := bytes.Clone(b)
		c[at] ^= 0x40
		_, err := ParseARP(c)
		wrong(t, field, err, field)
	}
}
