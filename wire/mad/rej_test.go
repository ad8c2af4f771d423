package mad

import (
	"errors"
	"testing"
)

func TestREJEveryBit(t *testing.T) {
	// The info length's top bit is kept zero too: more than 72 is refused.
	checkEveryBit(t, AttrREJ, map[int]byte{32: 0x3f, 33: 0x81})
}

// IBA 12.6.7.
func TestREJLayout(t *testing.T) {
	m := REJ{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, Message: REJOfOther, InfoLength: 6, Reason: RejectTimeout,
		Info: [72]byte{0: 1, 71: 2}, PrivateData: [148]byte{0: 3, 147: 4}}
	checkAt(t, &m, map[int]string{16: "0012", 24: "0102030405060708", 32: "800c0004", 36: "01", 107: "0203", 255: "04"})
}

func TestREJInfoLengthIsBounded(t *testing.T) {
	b := (&REJ{InfoLength: 73}).Append(nil)
	var e *Error
	if _, err := ParseREJ(b); !errors.As(err, &e) || e.Field != "reject info length" {
		t.Errorf("73 bytes of info: %v", err)
	}
}

// IBA 12.6.7.2: 1 to 35 but 34 have a meaning.
func TestRejectReasonsHaveNames(t *testing.T) {
	seen := map[string]RejectReason{}
	for r := range RejectReason(40) {
		s := r.String()
		if named := rejectNamed(r); named != (r >= 1 && r <= 35 && r != 34) {
			t.Errorf("reason %d is %q", r, s)
		}
		if other, twice := seen[s]; twice {
			t.Errorf("reasons %d and %d are both %q", other, r, s)
		}
		seen[s] = r
	}
	if got := RejectInvalidServiceID.String(); got != "invalid service ID" {
		t.Errorf("reason 8 is %q", got)
	}
	if got := RejectReason(0xffff).String(); got != "reject reason 65535" {
		t.Errorf("reason 65535 is %q", got)
	}
}

func rejectNamed(r RejectReason) bool { return int(r) < len(rejectNames) && rejectNames[r] != "" }
