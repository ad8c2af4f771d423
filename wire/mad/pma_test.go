package mad

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// IBA 16.1.3.5 gives the bytes of PortCounters; each field here is recognized by a value of its own.
func TestPortCountersOnTheWire(t *testing.T) {
	b := make([]byte, PMADataLen)
	for name, v := range map[string]uint64{
		"PortSelect": 3, "CounterSelect": 0xf0f1, "SymbolErrorCounter": 0x0102, "LinkErrorRecoveryCounter": 0x03, "LinkDownedCounter": 0x04,
		"PortRcvErrors": 0x0506, "PortRcvRemotePhysicalErrors": 0x0708, "PortRcvSwitchRelayErrors": 0x090a, "PortXmitDiscards": 0x0b0c,
		"PortXmitConstraintErrors": 0x0d, "PortRcvConstraintErrors": 0x0e, "CounterSelect2": 0x0f, "LocalLinkIntegrityErrors": 1,
		"ExcessiveBufferOverrunErrors": 2, "QP1Dropped": 0x1314, "VL15Dropped": 0x1516, "PortXmitData": 0x17181920,
		"PortRcvData":  0x21222324,
		"PortXmitPkts": 0x25262728, "PortRcvPkts": 0x29303132, "PortXmitWait": 0x33343536,
	} {
		if !PortCounters.Put(b, name, v) {
			t.Errorf("no field %s", name)
		}
		if got := PortCounters.Get(b, name); got != v {
			t.Errorf("%s reads as %#x, put %#x", name, got, v)
		}
	}
	want := []byte{
		0, 3, 0xf0, 0xf1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0x12, 0x13, 0x14, 0x15, 0x16,
		0x17, 0x18, 0x19, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36,
	}
	if !bytes.Equal(b[:len(want)], want) {
		t.Errorf("PortCounters are\n%x, want\n%x", b[:len(want)], want)
	}
}

// No two fields of an attribute share a bit, none lies outside of the MAD, and no name occurs twice.
func TestPMAFieldsDoNotOverlap(t *testing.T) {
	for _, a := range PMAttributes {
		owner, names := map[int]string{}, map[string]bool{}
		for _, f := range a.Fields {
			if names[f.Name] {
				t.Errorf("%s has two fields %s", a.Name, f.Name)
			}
			names[f.Name] = true
			if f.Width < 1 || f.Width > 64 || f.Bit+f.Width > 8*PMADataLen {
				t.Errorf("%s.%s has bits %d to %d", a.Name, f.Name, f.Bit, f.Bit+f.Width)
			}
			for i := f.Bit; i < f.Bit+f.Width; i++ {
				if owner[i] != "" {
					t.Errorf("%s: %s and %s share bit %d", a.Name, owner[i], f.Name, i)
				}
				owner[i] = f.Name
			}
		}
		if PMAttributeByID(a.ID) != a {
			t.Errorf("attribute %#x is not %s alone", a.ID, a.Name)
		}
	}
}

// Counters stop at their largest value, and a field changes no other's bits.
func TestPMAFieldsHoldTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(PMAttributes).Draw(t, "attribute")
		b := make([]byte, PMADataLen)
		want := map[string]uint64{}
		for range rapid.IntRange(1, 40).Draw(t, "writes") {
			f := rapid.SampledFrom(a.Fields).Draw(t, "field")
			v := rapid.Uint64().Draw(t, "value")
			f.Put(b, v)
			want[f.Name] = min(v, f.Max())
		}
		for _, f := range a.Fields {
			if got := f.Get(b); got != want[f.Name] {
				t.Fatalf("%s.%s is %d, want %d", a.Name, f.Name, got, want[f.Name])
			}
		}
	})
}

func TestPMAShortAttribute(t *testing.T) {
	f, _ := PortCountersExtended.Field("QP1Dropped")
	short := make([]byte, 4)
	f.Put(short, 7)
	if got := f.Get(short); got != 0 || !bytes.Equal(short, make([]byte, 4)) {
		t.Errorf("a field beyond the end reads %d and left %x", got, short)
	}
	if PortCounters.Get(short, "none") != 0 || PortCounters.Put(short, "none", 1) {
		t.Error("a field that is not there was written")
	}
	if PMAttributeByID(0x7777) != nil {
		t.Error("an attribute 0x7777")
	}
}

func TestPMARequestRoundTrip(t *testing.T) {
	data := make([]byte, PMADataLen)
	PortCounters.Put(data, "PortSelect", 9)
	r := PMARequest{Header: Header{Method: MethodGet, TransactionID: 77, AttributeID: AttrPortCounters, AttributeModifier: 0}, Data: data}
	b := r.Append([]byte("before"))[len("before"):]
	got, err := ParsePMA(b)
	if err != nil || got.TransactionID != 77 || got.AttributeID != AttrPortCounters || !bytes.Equal(got.Data, data) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, c := range []struct {
		at    int
		field string
	}{{0, "base version"}, {1, "management class"}, {2, "class version"}} {
		bad := bytes.Clone(b)
		bad[c.at] = 9
		var e *Error
		if _, err := ParsePMA(bad); !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("byte %d wrong: %v, want an error about the %s", c.at, err, c.field)
		}
	}
}

func FuzzParsePMA(f *testing.F) {
	r := PMARequest{Header: Header{Method: MethodGetResp, AttributeID: AttrPortCountersExtended}}
	f.Add(r.Append(nil))
	f.Add([]byte{1, 4, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParsePMA(b)
		if err != nil {
			return
		}
		if a := PMAttributeByID(got.AttributeID); a != nil {
			for _, field := range a.Fields {
				if v := field.Get(got.Data); v > field.Max() {
					t.Fatalf("%s is %d", field.Name, v)
				}
			}
		}
		if again := got.Append(nil); len(again) != Len || !bytes.Equal(again[PMADataOffset:], b[PMADataOffset:]) {
			t.Fatal("the attribute changed")
		}
	})
}
