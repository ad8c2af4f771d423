package mad

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// saRecords are the records with the offsets of bits that belong to no field.
var saRecords = []attribute{
	codec("NodeRecord", NodeRecordLen, bytesOf([2]int{2, 4}), ParseNodeRecord),
	codec("PortInfoRecord", PortInfoRecordLen, map[int]byte{38: 0x38, 56: 0xe0, 67: 0xe0}, ParsePortInfoRecord),
	codec("SLtoVLMappingTableRecord", SLtoVLRecordLen, bytesOf([2]int{4, 8}), ParseSLtoVLRecord),
	codec("SwitchInfoRecord", SwitchInfoRecordLen, with(bytesOf([2]int{2, 4}), map[int]byte{20: 0x07, 21: 0xff}), ParseSwitchInfoRecord),
	codec("LinearForwardingTableRecord", LFTRecordLen, bytesOf([2]int{4, 8}), ParseLFTRecord),
	codec("MulticastForwardingTableRecord", MFTRecordLen, with(bytesOf([2]int{4, 8}), map[int]byte{2: 0x0e}), ParseMFTRecord),
	codec("SMInfoRecord", SMInfoRecordLen, bytesOf([2]int{2, 4}), ParseSMInfoRecord),
	codec("LinkRecord", LinkRecordLen, bytesOf([2]int{6, 8}), ParseLinkRecord),
	codec("GUIDInfoRecord", GUIDInfoRecordLen, bytesOf([2]int{3, 8}), ParseGUIDInfoRecord),
	codec("P_KeyTableRecord", PKeyTableRecordLen, bytesOf([2]int{5, 8}), ParsePKeyTableRecord),
	codec("VLArbitrationTableRecord", VLArbRecordLen, nil, ParseVLArbRecord),
	codec("PathRecord", PathRecordLen, with(bytesOf([2]int{58, 64}), map[int]byte{44: 0x70}), ParsePathRecord),
	codec("MCMemberRecord", MCMemberRecordLen, with(bytesOf([2]int{50, 52}), map[int]byte{49: 0x7f}), ParseMCMemberRecord),
	codec("ServiceRecord", ServiceRecordLen, bytesOf([2]int{26, 28}), ParseServiceRecord),
	codec("InformInfo", InformInfoLen, nil, ParseInformInfo),
	codec("InformInfoRecord", InformInfoRecordLen, nil, ParseInformInfoRecord),
	codec("MultiPathRecord", MultiPathRecordLen, nil, ParseMultiPathRecord),
}

// IBA 15.2.5: each bit of a record that is not reserved belongs to a field; reserved ones are sent as zeros. Records whose
// fields limit their values are in the fuzz target only.
func TestRecordsEveryBit(t *testing.T) {
	for _, a := range saRecords {
		if a.reserved == nil {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := rapid.SliceOfN(rapid.Byte(), a.length, a.length).Draw(t, "record")
				want := bytes.Clone(b)
				for i, m := range a.reserved {
					want[i] &^= m
				}
				if got, err := a.recode(b); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%x became %x, want %x (%v)", b, got, want, err)
				}
			})
			var e *Error
			if err := a.parse(make([]byte, a.length-1)); !errors.As(err, &e) {
				t.Errorf("a byte less: %v", err)
			}
		})
	}
}

// FuzzParseSA: no bytes make a decoder panic, and what one accepts is stable.
func FuzzParseSA(f *testing.F) {
	s := NewSA(MethodGetTable, AttrPathRecord, 0, 7)
	f.Add(s.Append(nil))
	f.Add(bytes.Repeat([]byte{1}, 200))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, a := range saRecords {
			once, err := a.recode(b)
			if err != nil {
				continue
			}
			if twice, err := a.recode(once); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%s: %x then %x (%v)", a.name, once, twice, err)
			}
		}
		var r RMPPReceiver
		if s, err := ParseSA(b); err == nil {
			if again, err := ParseSA(s.Append(nil)); err != nil || again != s {
				t.Fatalf("%+v then %+v, %v", s, again, err)
			}
			r.Take(&s)
			r.Take(&s)
		}
	})
}

// A transfer arrives whole over a link that loses segments and acknowledgements, or both ends learn that it failed.
func TestTransferOverALossyLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Repeat([]byte("0123456789abcdef"), rapid.IntRange(0, 2000).Draw(t, "length"))
		data = data[:len(data)-min(len(data), rapid.IntRange(0, 15).Draw(t, "cut"))]
		rate := rapid.IntRange(0, 4).Draw(t, "lost of 10")
		seed := rapid.Uint32().Draw(t, "seed")
		lost := func() bool { seed = seed*1664525 + 1013904223; return int(seed>>16)%10 < rate }
		s := NewRMPPSender(NewSA(MethodGetTableResp, AttrNodeRecord, 0, 9), data)
		var r RMPPReceiver
		var arrived []byte
		now := time.Duration(1)
		for range 100_000 {
			if over, _ := s.Done(); over {
				break
			}
			m, ok := s.Next(now)
			if !ok {
				now = max(now, s.Deadline())
				s.Advance(now)
				continue
			}
			m, err := ParseSA(m.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			if lost() {
				continue
			}
			answer, answered, done, err := r.Take(&m)
			if err != nil {
				t.Fatal(err)
			}
			if done {
				_, arrived = r.Result()
			}
			if answered && !lost() {
				s.Take(&answer, now)
			}
		}
		over, failed := s.Done()
		switch {
		case !over:
			t.Fatal("it never ends")
		case failed && rate == 0:
			t.Fatal("it failed though nothing was lost")
		case !failed && !bytes.Equal(arrived, data):
			t.Fatalf("%d bytes arrived of %d", len(arrived), len(data))
		}
	})
}

// The lengths in the first and last segments count 20 bytes of header for each segment (IBA 13.6.2.1, 15.2.1.1).
func TestSegmentLengths(t *testing.T) {
	s := NewRMPPSender(NewSA(MethodGetTableResp, AttrNodeRecord, 0, 9), make([]byte, 450))
	first, _ := s.Next(1)
	if _, ok := s.Next(1); ok {
		t.Error("a second segment before the first acknowledgement")
	}
	s.Take(&SA{RMPP: RMPP{Type: RMPPAck, Data1: 1, Data2: 5}}, 1)
	s.Next(1)
	last, _ := s.Next(1)
	if first.RMPP.Data2 != 450+3*20 || first.RMPP.Flags != RMPPActive|RMPPFirst || last.RMPP.Data2 != 50+20 ||
		last.RMPP.Flags != RMPPActive|RMPPLast || last.RMPP.Data1 != 3 {
		t.Errorf("%+v, %+v", first.RMPP, last.RMPP)
	}
}

// What breaks the rules of a transfer aborts it with the status of the specification (IBA 13.6.2.4).
func TestReceiverAborts(t *testing.T) {
	good := func() SA {
		s := NewSA(MethodGetTableResp, AttrNodeRecord, 0, 9)
		s.RMPP = RMPP{Version: 1, Type: RMPPData, Flags: RMPPActive | RMPPFirst, Data1: 1}
		return s
	}
	for status, change := range map[uint8]func(*SA){
		RMPPStatusVersion:      func(s *SA) { s.RMPP.Version = 2 },
		RMPPStatusBadType:      func(s *SA) { s.RMPP.Type = 9 },
		RMPPStatusBadFirst:     func(s *SA) { s.RMPP.Data1 = 2 },
		RMPPStatusInconsistent: func(s *SA) { s.RMPP.Flags |= RMPPLast; s.RMPP.Data2 = 300 },
	} {
		var r RMPPReceiver
		m := good()
		change(&m)
		a, answered, _, err := r.Take(&m)
		var e *RMPPError
		if !errors.As(err, &e) || e.Status != status || !answered || a.RMPP.Type != RMPPAbort || a.RMPP.Status != status ||
			a.Method != MethodGetTableResp^0x80 {
			t.Errorf("status %d: %v, %+v", status, err, a.RMPP)
		}
	}
}
