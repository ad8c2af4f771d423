package lldp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

// from reads bytes that are written in hex.
func from(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	macA = eth.MAC{2, 0, 0, 0, 0x0a, 1}
	ids  = PDU{ChassisID: ChassisOf(macA), PortID: PortOf(macA), TTL: 120}
	ets  = ETS{Class: [8]uint8{0, 0, 2, 3, 0, 0, 0, 0}, Bandwidth: [8]uint8{40, 10, 0, 50}, Algorithm: [8]Algorithm{2, 2, 0, 2}}
)

// with returns ids with more.
func with(change func(*PDU)) PDU {
	p := ids
	change(&p)
	return p
}

// units are data units as other programs send them, and what they say.
var units = []struct {
	name, bytes string
	want        PDU
}{
	{"shutdown", "0207 04 020000000a01 0407 03 020000000a01 0602 0000 0000", PDU{ChassisID: ChassisOf(macA), PortID: PortOf(macA)}},
	{"mandatory only", "0207 04 020000000a01 0407 03 020000000a01 0602 0078 0000", ids},
	{"basic", `0207 04 020000000a01 0407 03 020000000a01 0602 0078
		0803 657468 0a04 686f7374 0c05 4c696e7578 0e04 0084 0080
		100c 0501 0a000001 02 00000003 00 1018 11 02 fe800000000000000000000000000001 02 00000003 00 0000`,
		with(func(p *PDU) {
			p.PortDescription, p.SystemName, p.SystemDescription = "eth", "host", "Linux"
			p.Capabilities = &Capabilities{CapabilityBridge | CapabilityStation, CapabilityStation}
			p.Management = []ManagementAddress{{netip.MustParseAddr("10.0.0.1"), 2, 3}, {netip.MustParseAddr("fe80::1"), 2, 3}}
		})},
	{"IEEE", `0207 04 020000000a01 0407 03 020000000a01 0602 0078
		fe19 0080c2 09 80 00230000 280a003200000000 0202000200000000
		fe19 0080c2 0a 00 00230000 280a003200000000 0202000200000000
		fe06 0080c2 0b 88 08
		fe08 0080c2 0c 00 6412b7 0000`,
		with(func(p *PDU) {
			rec := ets
			p.ETS = &ETSConfiguration{ETS: ets, Willing: true, Classes: 8}
			p.Recommendation = &rec
			p.PFC = &PFC{Willing: true, Capability: 8, Enabled: 8}
			p.Applications = &Applications{{3, SelectPort, 4791}}
		})},
	{"IEEE, three classes, CBS, MBC, no application", `0207 04 020000000a01 0407 03 020000000a01 0602 0078
		fe19 0080c2 09 43 00000000 0000000000000000 00000000000000ff
		fe06 0080c2 0b 41 ff fe05 0080c2 0c 00 0000`,
		with(func(p *PDU) {
			p.ETS = &ETSConfiguration{ETS: ETS{Algorithm: [8]Algorithm{7: Vendor}}, CBS: true, Classes: 3}
			p.PFC = &PFC{MBC: true, Capability: 1, Enabled: 0xff}
			p.Applications = &Applications{}
		})},
	{"CEE", `0207 04 020000000a01 0407 03 020000000a01 0602 0078
		fe43 001b21 02 020a 00 00 00000001 00000002
		0411 0000c000 01234567 0d0d0d0d0c0c0c0c 08
		0606 0000a000 08 08
		0816 00008000 8906 001b21 08 0cbc 011b21 10 8914 001b21 08 0000`,
		with(func(p *PDU) {
			oui := OUICEE
			p.CEE = &CEE{Sequence: 1, Acknowledged: 2,
				Groups: &CEEGroups{Feature{Enable: true, Willing: true}, [8]uint8{0, 1, 2, 3, 4, 5, 6, 7},
					[8]uint8{13, 13, 13, 13, 12, 12, 12, 12}, 8},
				PFC: &CEEPFC{Feature{Enable: true, Error: true}, 8, 8},
				Applications: &CEEApplications{Feature{Enable: true}, []CEEApplication{
					{0x8906, 0, oui, 8}, {3260, 1, oui, 16}, {0x8914, 0, oui, 8},
				}}}
		})},
	{"others", `0207 04 020000000a01 0407 03 020000000a01 0602 0078 fe09 00120f 01 03 6c010010 fe06 0080c2 01 0001 1201 07 0000`,
		with(func(p *PDU) {
			p.Others = []TLV{{TypeOrganization, OUI8023, 1, []byte{3, 0x6c, 1, 0, 0x10}}, {TypeOrganization, OUI8021, 1, []byte{0, 1}},
				{Type: 9, Value: []byte{7}}}
		})},
}

// TestPDU_Bytes: data units read as they say, and are written byte for byte as others write them.
func TestPDU_Bytes(t *testing.T) {
	for _, c := range units {
		b := from(t, c.bytes)
		got, f, err := Parse(b)
		if err != nil || f.Discarded != 0 || f.Unrecognized != len(c.want.Others) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %+v, %v\nwant %+v", c.name, got, f, err, c.want)
		}
		if w := c.want.Append(nil); !bytes.Equal(w, b) {
			t.Errorf("%s is written\n% x, want\n% x", c.name, w, b)
		}
	}
}

// TestParse_Faults: IEEE 802.1AB, 9.2.7.7: TLVs that are wrong are left out and counted; what is wrong with the three first, or with
// the structure, makes the data unit invalid.
func TestParse_Faults(t *testing.T) {
	const start = "0207 04 020000000a01 0407 03 020000000a01 0602 0078 "
	const config = "fe19 0080c2 09 00 00000000 0000000000000000 0000000000000000 "
	for _, c := range []struct {
		name, bytes string
		faults      Faults
		field       string // of the error
	}{
		{"nothing", "", Faults{}, "length"},
		{"half a header", "02", Faults{}, "length"},
		{"the port first", "0407 03 020000000a01", Faults{}, "type"},
		{"no port", "0207 04 020000000a01 0602 0078", Faults{}, "type"},
		{"no TTL", "0207 04 020000000a01 0407 03 020000000a01 0000", Faults{}, "type"},
		{"an ID without a value", "0201 04 0407 03 020000000a01 0602 0078", Faults{}, "length"},
		{"a short TTL", "0207 04 020000000a01 0407 03 020000000a01 0601 78", Faults{}, "length"},
		{"a longer TTL", "0207 04 020000000a01 0407 03 020000000a01 0603 007800 0000", Faults{}, ""},
		{"two TTLs", start + "0602 0078 0000", Faults{}, "number"},
		{"two chassis", start + "0207 04 020000000a01 0000", Faults{}, "number"},
		{"beyond the end", start + "0a05 61", Faults{}, "length"},
		{"half a header at the end", start + "0a", Faults{}, "length"},
		{"no end", start, Faults{}, ""},
		{"padding", start + "0000 ffff", Faults{}, ""},
		{"two names", start + "0a01 61 0a01 62 0000", Faults{Discarded: 1}, ""},
		{"short capabilities", start + "0e03 000000 0000", Faults{Discarded: 1}, ""},
		{"no OUI", start + "fe03 0080c2 0000", Faults{Discarded: 1}, ""},
		{"short ETS", start + "fe18 0080c2 09 00 00000000 0000000000000000 00000000000000 0000", Faults{Discarded: 1}, ""},
		{"two configurations", start + config + config + "0000", Faults{Discarded: 1}, ""},
		{"long PFC", start + "fe07 0080c2 0b 00 00 00 0000", Faults{Discarded: 1}, ""},
		{"half an application", start + "fe07 0080c2 0c 00 6412 0000", Faults{Discarded: 1}, ""},
		{"CEE without control", start + "fe0c 001b21 02 0606 00008000 08 08 0000", Faults{Discarded: 1}, ""},
		{"CEE beyond its end", start + "fe07 001b21 02 020a 00 0000", Faults{Discarded: 1}, ""},
		{"a management address beyond its TLV", start + "100c 2001 0a000001 02 00000003 00 0000", Faults{Discarded: 1}, ""},
		{"another family", start + "100a 0306 aabb 02 00000003 00 0000", Faults{}, ""},
		{"an address of no length", start + "100c 0401 0a000001 02 00000003 00 0000", Faults{Discarded: 1}, ""},
		{"a long end", start + "0001 00", Faults{Discarded: 1}, ""},
	} {
		_, f, err := Parse(from(t, c.bytes))
		var e *Error
		switch {
		case c.field == "" && (err != nil || f != c.faults):
			t.Errorf("%s: %+v, %v, want %+v", c.name, f, err, c.faults)
		case c.field != "" && (!errors.As(err, &e) || e.Field != c.field):
			t.Errorf("%s: %v, want one of %s", c.name, err, c.field)
		}
	}
}

// TestID: IDs are shown as people write them, and never as control characters.
func TestID(t *testing.T) {
	for _, c := range []struct {
		id            ID
		chassis, port string
	}{
		{ChassisOf(macA), "02:00:00:00:0a:01", "020000000a01"},
		{ID{PortInterface, "eth0"}, "65746830", "eth0"},
		{ID{ChassisNetwork, "\x01\x0a\x00\x00\x01"}, "10.0.0.1", "010a000001"},
		{ID{PortLocal, "swp\x1b[1m"}, "7377701b5b316d", "7377701b5b316d"},
		{ID{ChassisMAC, "short"}, "73686f7274", "73686f7274"},
	} {
		if c.id.Chassis() != c.chassis || c.id.Port() != c.port {
			t.Errorf("%+v: %s and %s, want %s and %s", c.id, c.id.Chassis(), c.id.Port(), c.chassis, c.port)
		}
	}
}

// TestFrame: a frame goes to the nearest bridge, and is as long as the shortest.
func TestFrame(t *testing.T) {
	b := ids.Frame(macA)
	e, rest, err := eth.ParseEthernet(b)
	if err != nil || len(b) != 60 || e.Dst != NearestBridge || e.Src != macA || e.Type != EtherType {
		t.Fatalf("%+v, %d bytes, %v", e, len(b), err)
	}
	if p, f, err := Parse(rest); err != nil || f != (Faults{}) || !reflect.DeepEqual(p, ids) {
		t.Errorf("%+v, %+v, %v", p, f, err)
	}
}
