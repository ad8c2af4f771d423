package administration

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// dumped is when the service in the file of testdata was registered.
var dumped = time.Unix(0x5e0d7a00, 0)

// TestRegistrationsText: a dump in OpenSM's form is read field by field and written again byte by byte.
// (TestRegistrationsGoBetweenManagers in test/fabric does this with OpenSM itself.)
func TestRegistrationsText(t *testing.T) {
	text, err := os.ReadFile("testdata/opensm-sa.dump")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadRegistrations(bytes.NewReader(text), dumped)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Groups) != 2 || !r.Groups[0].WellKnown || r.Groups[1].WellKnown || r.Groups[1].Record.MLID != 0xc007 ||
		len(r.Groups[1].Members) != 2 ||
		r.Groups[1].Members[1] != (RegisteredMember{ib.GID{0xfe, 0x80, 15: 0xaa}, 4, true}) || r.Groups[1].Record.FlowLabel != 0x123 ||
		r.Groups[1].Record.MTU != 4 {
		t.Errorf("groups %+v", r.Groups)
	}
	if len(r.Subscriptions) != 1 || r.Subscriptions[0].QPN != 1 || r.Subscriptions[0].LID != 4 ||
		r.Subscriptions[0].Info.TrapNumber != 64 || r.Subscriptions[0].Info.ProducerType != 4 {
		t.Errorf("subscriptions %+v", r.Subscriptions)
	}
	if len(r.Services) != 1 || r.Services[0].Left != 300*time.Second || !strings.HasPrefix(string(r.Services[0].Record.Name[:]),
		"a name with blanks\x00") ||
		r.Services[0].Record.Data[0] != 1 || r.Services[0].Record.Data[63] != 0x78 || r.Services[0].Record.Key[15] != 0x10 {
		t.Errorf("services %+v", r.Services)
	}
	if len(r.GUIDs) != 1 || !reflect.DeepEqual(r.GUIDs[0].Table, []uint64{0, 0xaa, 0, 0xbb, 0, 0, 0, 0}) {
		t.Errorf("GUIDs %+v", r.GUIDs)
	}
	if again := r.AppendText(nil, dumped); string(again) != string(text) {
		t.Errorf("written as\n%s\nwant\n%s", again, text)
	}
	if r, err = ReadRegistrations(bytes.NewReader(text), dumped.Add(100*time.Second)); err != nil || r.Services[0].Left != 200*time.Second {
		t.Errorf("100 s later %v of the lease are left (%v), want 200 s", r.Services[0].Left, err)
	}
	if r, err = ReadRegistrations(bytes.NewReader(text), dumped.Add(time.Hour)); err != nil || len(r.Services) != 0 {
		t.Errorf("an hour later the services are %+v (%v), want none", r.Services, err)
	}
}

// TestRegistrationsTextRefused: the error for a wrong line names the line, and what stands before it is read.
func TestRegistrationsTextRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/opensm-sa.dump")
	if err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]string{
		"MC Group 0xc008 : mgid=0x12":      "line 17: there is no \":0x\"",
		"MC Group 0xzz : mgid=0x1:0x2":     "line 17: 0xzz: want a hexadecimal number of 16 bits",
		"InformInfo Record: subscriber":    "line 17: there is no \"subscriber_gid=0x\"",
		"Service Record: id=0x1 gid=0x1:2": "line 17: there is no \":0x\"",
		"GUIDInfo Record: base_guid=0x1":   "line 17: there is no \"lid=0x\"",
	} {
		r, err := ReadRegistrations(strings.NewReader(string(text)+bad+"\n"+string(text)), dumped)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
		if len(r.Groups) != 2 || len(r.Subscriptions) != 1 || len(r.Services) != 1 || len(r.GUIDs) != 1 {
			t.Errorf("%q: read %+v, want all that stands before it", bad, r)
		}
	}
}

// TestRegistrationsRoundTrip: what is written is read back, also with names that look like fields.
func TestRegistrationsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u64 := func(n string) uint64 { return rapid.Uint64().Draw(t, n) }
		gid := func() (g ib.GID) { copy(g[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "GID")); return g }
		var r Registrations
		for range rapid.IntRange(0, 3).Draw(t, "groups") {
			var w [mad.MCMemberRecordLen]byte
			copy(w[:], rapid.SliceOfN(rapid.Byte(), len(w), len(w)).Draw(t, "group"))
			rec, _ := mad.ParseMCMemberRecord(w[:])
			g := RegisteredGroup{Record: rec, WellKnown: rapid.Bool().Draw(t, "known")}
			for range rapid.IntRange(0, 3).Draw(t, "members") {
				g.Members = append(g.Members, RegisteredMember{gid(), rapid.Uint8Range(0, 15).Draw(t, "state"),
					rapid.Bool().Draw(t, "proxy")})
			}
			r.Groups = append(r.Groups, g)
		}
		for range rapid.IntRange(0, 3).Draw(t, "subscriptions") {
			r.Subscriptions = append(r.Subscriptions, Subscription{gid(), ib.LID(u64("LID")), ib.QPN(u64("QPN") & 0xffffff), mad.InformInfo{
				GID: gid(), LIDBegin: ib.LID(u64("begin")), LIDEnd: ib.LID(u64("end")), IsGeneric: rapid.Bool().Draw(t, "generic"),
				Subscribe: true, Type: uint16(u64("type")),
				TrapNumber: uint16(u64("number")), QPN: ib.QPN(u64("QPN") & 0xffffff), RespTime: uint8(u64("time") & 31),
				ProducerType: uint32(u64("producer") & 0xffffff)}})
		}
		for range rapid.IntRange(0, 3).Draw(t, "services") {
			s := RegisteredService{Record: mad.ServiceRecord{ID: u64("ID"), GID: gid(), PKey: ib.PKey(u64("P_Key")),
				Lease: uint32(u64("lease"))}, Left: -1}
			if rapid.Bool().Draw(t, "ends") {
				s.Left = time.Duration(rapid.IntRange(1, 1<<30).Draw(t, "left")) * time.Second
			}
			copy(s.Record.Name[:63], rapid.SampledFrom([]string{"", "x", "data8=0x1:0x2 lease_period=0x3", "a  b ", " data8=0x", " name=",
				strings.Repeat("n", 63)}).Draw(t, "name"))
			copy(s.Record.Key[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key"))
			copy(s.Record.Data[:], rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(t, "data"))
			r.Services = append(r.Services, s)
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "ports") {
			table := rapid.SliceOfN(rapid.Uint64(), 16, 16).Draw(t, "table")
			table[0] = 0
			r.GUIDs = append(r.GUIDs, PortGUIDs{uint64(i + 1), ib.LID(u64("LID")), table})
		}
		got, err := ReadRegistrations(bytes.NewReader(r.AppendText(nil, dumped)), dumped)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%v\n%+v\nwant\n%+v", err, got, r)
		}
	})
}

// TestServiceNamesInText: a service's name cannot be mistaken for a new line or the end of the name.
func TestServiceNamesInText(t *testing.T) {
	r := Registrations{Services: []RegisteredService{{Left: -1}}}
	copy(r.Services[0].Record.Name[:], "it's\nMC Group 0xc000")
	if text := string(r.AppendText(nil, dumped)); strings.Count(text, "\n") != 2 || !strings.Contains(text, "name='it?s?MC Group 0xc000'") {
		t.Errorf("%q, want two lines, with the control characters in the name replaced", text)
	}
}

func FuzzReadRegistrations(f *testing.F) {
	text, err := os.ReadFile("testdata/opensm-sa.dump")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, l := range bytes.SplitAfter(text, []byte("\n\n")) {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadRegistrations(bytes.NewReader(b), dumped)
		if err != nil {
			return
		}
		if _, err := ReadRegistrations(bytes.NewReader(r.AppendText(nil, dumped)), dumped); err != nil {
			t.Errorf("what was written of %q cannot be read: %v", b, err)
		}
		x, h := plug(t, Config{}) // whatever the dump says, requests are answered
		x.sa.Recall(x.now, x.n, func(int32) []ib.PKey { return []ib.PKey{0xffff} }, &r)
		x.up()
		x.run(time.Second)
		lid := x.lid(h[0])
		if head, _ := x.Ask(mad.MethodGet, mad.AttrNodeRecord, 1, []byte{byte(lid >> 8), byte(lid)}); head.Status != 0 {
			t.Errorf("a request afterwards: status %#x, want 0", head.Status)
		}
	})
}
