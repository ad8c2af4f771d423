package mad

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// Reserved bytes of subnet management packets (IBA 14.2.1.1 and 14.2.1.2) and of the common header.
var (
	smpReserved    = bytesOf([2]int{18, 20}, [2]int{36, 64})
	smpLIDReserved = with(maps.Clone(smpReserved), bytesOf([2]int{32, 36}, [2]int{128, 256}))
)

func fill(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return append(b, make([]byte, Len-len(b))...)
}

// A request of one hop through port 1, and what ibsim 0.10 answered to it.
func directedPair() (request, answer []byte) {
	head := strings.Repeat("00", 8) + "ffffffff" + strings.Repeat("00", 28)
	path := "0001" + strings.Repeat("00", 62)
	request = fill("01810101" + "0000" + "0001" + "0000000000000003" + "00110000" + "00000000" + head + strings.Repeat("00", 64) + path)
	info := "010102080002c902000020000002c902000020000002c902000020000008b924000000a1020002c9" + strings.Repeat("00", 24)
	answer = fill("01810181" + "8000" + "0001" + "0001000000000003" + "00110000" + "00000000" + head + info + path + "0102")
	return request, answer
}

func TestDirectedRequestLayout(t *testing.T) {
	want, _ := directedPair()
	s := NewSMP(MethodGet, AttrNodeInfo, 0, 3)
	if err := s.Direct([]uint8{1}); err != nil {
		t.Fatal(err)
	}
	if got := s.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("%s, want\n%s", hex.Dump(got), hex.Dump(want))
	}
	if !s.Directed() || s.Returning() || s.HopCount() != 1 || s.HopPointer() != 0 {
		t.Errorf("%+v", s.Header)
	}
}

func TestDirectedAnswerOfIbsim(t *testing.T) {
	_, b := directedPair()
	s, err := ParseSMP(b)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Returning() || s.StatusCode() != StatusOK || s.Method != MethodGetResp || s.TransactionID != 1<<48|3 ||
		s.InitialPath != [64]uint8{1: 1} || s.ReturnPath != [64]uint8{1, 2} || s.DrSLID != ib.LIDPermissive {
		t.Errorf("%+v", s)
	}
	if n, err := ParseNodeInfo(s.Data[:]); err != nil || n.NodeType != NodeSwitch || n.LocalPortNum != 2 {
		t.Errorf("%+v, %v", n, err)
	}
	if got := s.Append(nil); !bytes.Equal(got, b) {
		t.Errorf("comes back as\n%s", hex.Dump(got))
	}
}

func TestLIDRoutedLayout(t *testing.T) {
	s := NewSMP(MethodSet, AttrPortInfo, 7, 0x1122334455667788)
	s.MKey, s.Data[0], s.InitialPath[1] = 0xa1a2a3a4a5a6a7a8, 9, 3
	s.SetStatus(StatusInvalidField, true)
	want := fill("01010102" + "001c" + "0000" + "1122334455667788" + "00150000" + "00000007" + "a1a2a3a4a5a6a7a8" +
		strings.Repeat("00", 32) + "09")
	if got := s.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("%s, want\n%s", hex.Dump(got), hex.Dump(want))
	}
	if s.Directed() || s.Returning() || s.StatusCode() != StatusInvalidField {
		t.Errorf("%+v", s.Header)
	}
}

// Each bit of both kinds of packets that is not reserved belongs to a field.
func TestSMPEveryBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), Len, Len).Draw(t, "packet")
		directed := rapid.Bool().Draw(t, "directed")
		b[0], b[1], b[2] = BaseVersion, ClassSubnetLID, ClassVersionSMP
		reserved := smpLIDReserved
		if directed {
			b[1], b[7], reserved = ClassSubnetDir, b[7]&63, smpReserved
		}
		want := bytes.Clone(b)
		for i, mask := range reserved {
			want[i] &^= mask
		}
		s, err := ParseSMP(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Append(nil); !bytes.Equal(got, want) {
			t.Fatalf("%s, want\n%s", hex.Dump(got), hex.Dump(want))
		}
	})
}

func TestParseSMPRefuses(t *testing.T) {
	good, _ := directedPair()
	change := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for field, b := range map[string][]byte{
		"length": good[:255], "base version": change(0, 2), "management class": change(1, ClassPerf), "class version": change(2, 2),
		"hop count": change(7, 64),
	} {
		var e *Error
		if _, err := ParseSMP(b); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%v, want an error about %q", err, field)
		}
	}
	s := NewSMP(MethodGet, AttrNodeInfo, 0, 0)
	if err := s.Direct(make([]uint8, 64)); err == nil {
		t.Error("a path of 64 hops was accepted")
	}
}

// FuzzParseSMP: no bytes make a decoder panic, and what one accepts is stable.
func FuzzParseSMP(f *testing.F) {
	request, answer := directedPair()
	f.Add(request)
	f.Add(answer)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, a := range attributes {
			once, err := a.recode(b)
			if err != nil {
				continue
			}
			if twice, err := a.recode(once); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%s: %x then %x (%v)", a.name, once, twice, err)
			}
		}
		s, err := ParseSMP(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v is not an *Error", err)
			}
			return
		}
		again, err := ParseSMP(s.Append(nil))
		if d := cmp.Diff(s, again); err != nil || d != "" {
			t.Fatalf("%v\n%s", err, d)
		}
	})
}
