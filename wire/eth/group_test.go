package eth

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var addrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func TestIGMP(t *testing.T) {
	m := IGMP{Type: IGMPv2Report, Group: netip.MustParseAddr("239.1.2.3")}
	b := m.Append([]byte("x"))[1:]
	// 0x1600 + 0xef01 + 0x0203 = 0x10704, folded 0x0705, complemented 0xf8fa.
	if got := hex.EncodeToString(b); got != "1600f8faef010203" {
		t.Errorf("report %s", got)
	}
	if got, err := ParseIGMP(b); err != nil || got != m {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := ParseIGMP(b[:7])
	wrong(t, "7 bytes", err, "igmp message")
	c := bytes.Clone(b)
	c[7]++
	_, err = ParseIGMP(c)
	wrong(t, "changed", err, "igmp checksum")
	c[0] = 0x13
	_, err = ParseIGMP(c)
	wrong(t, "type 0x13", err, "igmp type")
}

// RFC 3376 4.2: the join of a group from any source is a change to excluding none.
func TestIGMPv3Report(t *testing.T) {
	join := []GroupRecord{{Type: ChangeToExclude, Group: netip.MustParseAddr("239.1.2.3")}}
	b := AppendIGMPv3Report(nil, join)
	if got := hex.EncodeToString(b); got != "2200e8f90000000104000000ef010203" {
		t.Errorf("join %s", got)
	}
	more := append(join, GroupRecord{Type: AllowNewSources, Group: netip.MustParseAddr("232.0.0.1"),
		Sources: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}})
	got, err := ParseIGMPv3Report(AppendIGMPv3Report(nil, more))
	if diff := cmp.Diff(more, got, addrs); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// The counts in a report may promise more than there is.
func TestReportsThatPromiseTooMuch(t *testing.T) {
	b := AppendIGMPv3Report(nil, []GroupRecord{{Type: 4, Group: netip.MustParseAddr("239.1.2.3")}})
	for name, f := range map[string]func(b []byte){
		"records": func(b []byte) { b[6] = 0xff },
		"sources": func(b []byte) { b[10] = 0xff },
		"aux":     func(b []byte) { b[9] = 0xff },
	} {
		c := bytes.Clone(b)
		f(c)
		c[2], c[3] = 0, 0
		s := Checksum(c)
		c[2], c[3] = byte(s>>8), byte(s)
		_, err := ParseIGMPv3Report(c)
		wrong(t, name, err, "group record")
	}
}

func TestMLD(t *testing.T) {
	src, dst := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::1:3")
	m := MLD{Type: MLDv1Report, MaxRespDelay: 7, Group: dst}
	b := m.Append(nil, src, dst)
	if got, err := ParseMLD(b, src, dst); err != nil || got != m {
		t.Errorf("%+v, %v", got, err)
	}
	if b[0] != 131 || b[5] != 7 || !bytes.Equal(b[8:], dst.AsSlice()) {
		t.Errorf("% x", b)
	}
	_, err := ParseMLD(b, dst, dst)
	wrong(t, "another source", err, "icmpv6 checksum")
	_, err = ParseMLD(b[:23], src, dst)
	wrong(t, "23 bytes", err, "mld message")
	records := []GroupRecord{{Type: ChangeToExclude, Group: dst}, {Type: ChangeToInclude, Group: dst, Sources: []netip.Addr{src}}}
	r := AppendMLDv2Report(nil, src, dst, records)
	got, err := ParseMLDv2Report(r, src, dst)
	if diff := cmp.Diff(records, got, addrs); err != nil || diff != "" || r[0] != 143 {
		t.Errorf("%v, %s", err, diff)
	}
	_, err = ParseMLD(r, src, dst)
	wrong(t, "version 2 report", err, "mld type")
	_, err = ParseMLDv2Report(b, src, dst)
	wrong(t, "version 1 report", err, "mld type")
	if got := hex.EncodeToString(AppendRouterAlert(nil, ProtocolICMPv6)); got != "3a00050200000100" {
		t.Errorf("router alert %s", got)
	}
}

func TestICMP(t *testing.T) {
	m := ICMP{Type: ICMPUnreachable, Code: ICMPPortUnreachable, Data: []byte("the packet")}
	b := m.Append(nil)
	got, err := ParseICMP(b)
	if diff := cmp.Diff(m, got); err != nil || diff != "" || Checksum(b) != 0 {
		t.Errorf("%v, %s", err, diff)
	}
	b[8] ^= 1
	_, err = ParseICMP(b)
	wrong(t, "changed", err, "icmp checksum")
	_, err = ParseICMP(b[:7])
	wrong(t, "7 bytes", err, "icmp message")
	src, dst := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2")
	v6 := ICMP{Type: ICMPv6PacketTooBig, Rest: 1280, Data: []byte("odd")}
	got, err = ParseICMPv6(v6.AppendV6(nil, src, dst), src, dst)
	if diff := cmp.Diff(v6, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// FuzzGroups: no bytes make a decoder panic or grow, and what is accepted is stable.
func FuzzGroups(f *testing.F) {
	src, dst := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::16")
	r4 := []GroupRecord{{Type: 4, Group: netip.MustParseAddr("239.1.2.3"), Sources: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}}
	r6 := []GroupRecord{{Type: 4, Group: dst, Sources: []netip.Addr{src}}}
	f.Add(AppendIGMPv3Report(nil, r4))
	f.Add((&IGMP{Type: IGMPQuery}).Append(nil))
	f.Add((&MLD{Type: MLDv1Done, Group: dst}).Append(nil, src, dst))
	f.Add(AppendMLDv2Report(nil, src, dst, r6))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := ParseIGMP(b); err == nil {
			if again, err := ParseIGMP(m.Append(nil)); err != nil || again != m {
				t.Fatalf("igmp: %+v, %v", again, err)
			}
		}
		if m, err := ParseMLD(b, src, dst); err == nil {
			if again, err := ParseMLD(m.Append(nil, src, dst), src, dst); err != nil || again != m {
				t.Fatalf("mld: %+v, %v", again, err)
			}
		}
		if r, err := ParseIGMPv3Report(b); err == nil {
			if again, err := ParseIGMPv3Report(AppendIGMPv3Report(nil, r)); err != nil || !cmp.Equal(r, again, addrs) {
				t.Fatalf("igmpv3: %v, %v", again, err)
			}
		}
		if r, err := ParseMLDv2Report(b, src, dst); err == nil {
			if again, err := ParseMLDv2Report(AppendMLDv2Report(nil, src, dst, r), src, dst); err != nil || !cmp.Equal(r, again, addrs) {
				t.Fatalf("mldv2: %v, %v", again, err)
			}
		}
		_, _ = ParseICMP(b)
	})
}
