package lldp

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

var (
	octets  = rapid.SliceOfN(rapid.Byte(), 1, 255)
	table   = rapid.Custom(func(t *rapid.T) (a [8]uint8) { copy(a[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "table")); return })
	nibbles = rapid.Custom(func(t *rapid.T) (a [8]uint8) {
		for i := range a {
			a[i] = uint8(rapid.IntRange(0, 15).Draw(t, "nibble"))
		}
		return
	})
	feature = rapid.Custom(func(t *rapid.T) Feature {
		return Feature{rapid.Byte().Draw(t, "operating"), rapid.Byte().Draw(t, "latest"), rapid.Bool().Draw(t, "enable"),
			rapid.Bool().Draw(t, "willing"), rapid.Bool().Draw(t, "error"), rapid.Byte().Draw(t, "subtype")}
	})
	shares = rapid.Custom(func(t *rapid.T) ETS {
		e := ETS{Class: nibbles.Draw(t, "class"), Bandwidth: table.Draw(t, "bandwidth")}
		for i, a := range table.Draw(t, "algorithm") {
			e.Algorithm[i] = Algorithm(a)
		}
		return e
	})
)

// anyPDU draws a data unit that can be written whole.
func anyPDU(t *rapid.T) PDU {
	id := func(what string) ID { return ID{rapid.Byte().Draw(t, what), string(octets.Draw(t, what))} }
	p := PDU{ChassisID: id("chassis"), PortID: id("port"), TTL: uint16(rapid.IntRange(1, 65535).Draw(t, "TTL"))}
	maybe := func(what string) bool { return rapid.Bool().Draw(t, what) }
	if maybe("texts") {
		p.PortDescription, p.SystemName = string(octets.Draw(t, "description")), string(octets.Draw(t, "name"))
	}
	if maybe("capabilities") {
		p.Capabilities = &Capabilities{Capability(rapid.Uint16().Draw(t, "supported")), Capability(rapid.Uint16().Draw(t, "enabled"))}
	}
	if maybe("management") {
		a, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address"))
		p.Management = []ManagementAddress{{a, rapid.Byte().Draw(t, "numbering"), rapid.Uint32().Draw(t, "number")}}
	}
	if maybe("IEEE") {
		r := shares.Draw(t, "recommendation")
		p.ETS = &ETSConfiguration{shares.Draw(t, "ETS"), maybe("willing"), maybe("CBS"), uint8(rapid.IntRange(1, 8).Draw(t, "classes"))}
		p.Recommendation = &r
		p.PFC = &PFC{maybe("willing"), maybe("MBC"), uint8(rapid.IntRange(0, 15).Draw(t, "capability")), rapid.Byte().Draw(t, "enabled")}
		a := Applications{}
		for range rapid.IntRange(0, MostApplications).Draw(t, "applications") {
			a = append(a, Application{uint8(rapid.IntRange(0, 7).Draw(t, "priority")), Selector(rapid.IntRange(0, 7).Draw(t, "selector")),
				rapid.Uint16().Draw(t, "protocol")})
		}
		p.Applications = &a
	}
	if maybe("CEE") {
		p.CEE = &CEE{Sequence: rapid.Uint32().Draw(t, "sequence"), Acknowledged: rapid.Uint32().Draw(t, "acknowledged")}
		p.CEE.Groups = &CEEGroups{feature.Draw(t, "feature"), nibbles.Draw(t, "groups"), table.Draw(t, "percent"), rapid.Byte().Draw(t, "classes")}
		p.CEE.PFC = &CEEPFC{feature.Draw(t, "feature"), rapid.Byte().Draw(t, "enabled"), rapid.Byte().Draw(t, "classes")}
		a := &CEEApplications{Feature: feature.Draw(t, "feature")}
		for range rapid.IntRange(0, MostCEEApplications).Draw(t, "applications") {
			a.Table = append(a.Table, CEEApplication{rapid.Uint16().Draw(t, "protocol"), Selector(rapid.IntRange(0, 3).Draw(t, "selector")),
				OUI{rapid.Byte().Draw(t, "OUI") &^ 3, 0x1b, 0x21}, rapid.Byte().Draw(t, "priorities")})
		}
		p.CEE.Applications = a
	}
	if maybe("others") {
		p.Others = []TLV{{Type: Type(rapid.IntRange(9, 126).Draw(t, "type")), Value: octets.Draw(t, "value")},
			{TypeOrganization, OUI8023, rapid.Byte().Draw(t, "subtype"), octets.Draw(t, "value")}}
	}
	return p
}

// TestPDU_ReadsBack: what is written reads back.
func TestPDU_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPDU(t)
		got, f, err := Parse(p.Append(nil))
		if err != nil || f.Discarded != 0 || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v\nreads back as\n%+v, %+v, %v", p, got, f, err)
		}
	})
}

// FuzzParse: no bytes make the reader fail otherwise than by an error, and what it has read can be written and read again.
func FuzzParse(f *testing.F) {
	for _, c := range units {
		f.Add(from(f, c.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _, err := Parse(b)
		if err != nil {
			return
		}
		again, faults, err := Parse(p.Append(nil))
		if err != nil || faults.Discarded != 0 || !bytes.Equal(again.Append(nil), p.Append(nil)) {
			t.Fatalf("%+v\nis written as\n% x\nwhich reads as %+v, %+v, %v", p, p.Append(nil), again, faults, err)
		}
		_, _ = p.ChassisID.Chassis(), p.PortID.Port()
	})
}
