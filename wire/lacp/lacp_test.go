package lacp

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// bonding returns what Linux's bonding driver and a partner said to each other over two links: each frame, and its source.
func bonding(t testing.TB) (frames [][]byte) {
	t.Helper()
	f, err := os.Open("testdata/bonding.pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, b)
	}
}

var macA = eth.MAC{2, 0, 0, 0, 0x0a, 1}

// 6.4.2.3: what another implementation has sent is read, and written again byte for byte.
func TestPDU_OfLinux(t *testing.T) {
	kernel := 0
	for i, b := range bonding(t) {
		h, body, err := eth.ParseEthernet(b)
		if err != nil || h.Type != EtherType || h.Dst != SlowProtocols {
			t.Fatalf("frame %d: %+v, %v", i, h, err)
		}
		p, err := Parse(body)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		if p.Actor.Key == 15 && p.Actor.System == (eth.MAC{2, 0, 0, 0, 0x99, 1}) {
			kernel++
		}
		if again := p.Frame(h.Src); !bytes.Equal(again, b) {
			t.Errorf("frame %d\n% x\nis written as\n% x", i, b, again)
		}
	}
	if kernel == 0 {
		t.Error("no data unit is the bonding driver's")
	}
}

// 6.4.2.3: each field is where it has to be.
func TestPDU_Layout(t *testing.T) {
	p := PDU{Actor: Participant{0x0102, macA, 0x0304, 0x0506, 0x0708, Activity | Aggregation | Defaulted},
		Partner: Participant{0x1112, eth.Broadcast, 0x1314, 0x1516, 0x1718,
			Timeout | Synchronization | Collecting | Distributing | Expired},
		MaxDelay: 0x2122}
	want := append([]byte{1, 0x80, 0xc2, 0, 0, 2}, macA[:]...)
	want = append(want, 0x88, 0x09, 1, 1,
		1, 20, 1, 2, 2, 0, 0, 0, 0x0a, 1, 3, 4, 5, 6, 7, 8, 0x45, 0, 0, 0,
		2, 20, 0x11, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0xba, 0, 0, 0,
		3, 16, 0x21, 0x22)
	want = append(want, make([]byte, 124-len(want))...)
	if got := p.Frame(macA); !bytes.Equal(got, want) {
		t.Errorf("\n% x, want\n% x", got, want)
	}
}

// 6.5.3.3: a marker and its response differ by the type alone.
func TestMarker_Layout(t *testing.T) {
	for kind, response := range map[byte]bool{1: false, 2: true} {
		m := Marker{response, 0x0102, macA, 0x01020304}
		want := append(append([]byte{1, 0x80, 0xc2, 0, 0, 2}, macA[:]...), 0x88, 0x09, 2, 1,
			kind, 16, 1, 2, 2, 0, 0, 0, 0x0a, 1, 1, 2, 3, 4, 0, 0)
		want = append(want, make([]byte, 124-len(want))...)
		got := m.Frame(macA)
		if !bytes.Equal(got, want) {
			t.Errorf("\n% x, want\n% x", got, want)
		}
		if back, err := ParseMarker(got[eth.EthernetLen:]); err != nil || back != m {
			t.Errorf("%+v reads back as %+v, %v", m, back, err)
		}
	}
}

// 6.4.2.3 c and 6.5.3.3: a later version is read, and what does not have the structure is refused with its field.
func TestParse_Refused(t *testing.T) {
	unit := (&PDU{}).Frame(macA)[eth.EthernetLen:]
	marker := (&Marker{}).Frame(macA)[eth.EthernetLen:]
	parse := func(b []byte) error { _, err := Parse(b); return err }
	parseMarker := func(b []byte) error { _, err := ParseMarker(b); return err }
	for _, c := range []struct {
		name  string
		parse func([]byte) error
		from  []byte
		at    int
		value byte
		field string
	}{
		{"version 2", parse, unit, 1, 2, ""},
		{"version 0", parse, unit, 1, 0, "version"},
		{"marker", parse, unit, 0, 2, "subtype"},
		{"no actor", parse, unit, 2, 2, "actor information TLV type"},
		{"short actor", parse, unit, 3, 19, "actor information length"},
		{"no partner", parse, unit, 22, 1, "partner information TLV type"},
		{"long partner", parse, unit, 23, 21, "partner information length"},
		{"no collector", parse, unit, 42, 0, "collector information TLV type"},
		{"long collector", parse, unit, 43, 20, "collector information length"},
		{"a data unit", parseMarker, marker, 0, 1, "subtype"},
		{"marker of version 0", parseMarker, marker, 1, 0, "version"},
		{"no marker", parseMarker, marker, 2, 3, "marker TLV type"},
		{"short marker", parseMarker, marker, 3, 0, "marker length"},
	} {
		b := bytes.Clone(c.from)
		b[c.at] = c.value
		err := c.parse(b)
		var e *Error
		switch {
		case c.field == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &e) || e.Field != c.field:
			t.Errorf("%s: %v, want one about %s", c.name, err, c.field)
		}
	}
	for n := range used {
		if parse(unit[:n]) == nil {
			t.Errorf("a data unit of %d bytes is read", n)
		}
	}
	for n := range markerUsed {
		if parseMarker(marker[:n]) == nil {
			t.Errorf("a marker of %d bytes is read", n)
		}
	}
}

func drawParticipant(t *rapid.T, name string) (p Participant) {
	p.SystemPriority, p.Key = rapid.Uint16().Draw(t, name), rapid.Uint16().Draw(t, name)
	p.PortPriority, p.Port = rapid.Uint16().Draw(t, name), rapid.Uint16().Draw(t, name)
	copy(p.System[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, name))
	p.State = State(rapid.Byte().Draw(t, name))
	return p
}

// What is written reads back.
func TestPDU_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := PDU{rapid.Byte().Filter(func(b byte) bool { return b > 0 }).Draw(t, "version"), drawParticipant(t, "actor"),
			drawParticipant(t, "partner"), rapid.Uint16().Draw(t, "delay")}
		got, err := Parse(p.Frame(macA)[eth.EthernetLen:])
		if err != nil || got != p {
			t.Fatalf("%+v reads back as %+v, %v", p, got, err)
		}
	})
}

// No bytes make the readers fail otherwise than by an error, and what they have read can be written and read again.
func FuzzParse(f *testing.F) {
	for _, b := range bonding(f)[:4] {
		f.Add(b[eth.EthernetLen:])
	}
	f.Add((&Marker{Transaction: 1}).Frame(macA)[eth.EthernetLen:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := Parse(b); err == nil {
			if again, err := Parse(p.Frame(macA)[eth.EthernetLen:]); err != nil || again != p {
				t.Fatalf("%+v reads again as %+v, %v", p, again, err)
			}
			_ = p.Actor.State.String()
		}
		if m, err := ParseMarker(b); err == nil {
			if again, err := ParseMarker(m.Frame(macA)[eth.EthernetLen:]); err != nil || again != m {
				t.Fatalf("%+v reads again as %+v, %v", m, again, err)
			}
		}
	})
}
