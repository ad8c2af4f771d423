package mad

import (
	"errors"
	"testing"
)

func TestAPREveryBit(t *testing.T) {
	// The info length is kept below 64: more than 72 is refused.
	checkEveryBit(t, AttrAPR, map[int]byte{32: 0xc0, 34: 0xff, 35: 0xff})
}

// IBA 12.8.2.
func TestAPRLayout(t *testing.T) {
	m := APR{LocalCommID: 0x01020304, RemoteCommID: 0x05060708, InfoLength: 72, Status: APRInvalidSL, Info: [72]byte{0: 1, 71: 2},
		PrivateData: [148]byte{0: 3, 147: 4}}
	checkAt(t, &m, map[int]string{16: "001a", 24: "0102030405060708", 32: "480d0000", 36: "01", 107: "0203", 255: "04"})
}

func TestAPRInfoLengthIsBounded(t *testing.T) {
	b := (&APR{InfoLength: 73}).Append(nil)
	var e *Error
	if _, err := ParseAPR(b); !errors.As(err, &e) || e.Field != "additional info length" {
		t.Errorf("73 bytes of info: %v", err)
	}
	if got, want := APRInvalidSL.String(), "SL rejected"; got != want {
		t.Errorf("status 13 is %q, want %q", got, want)
	}
}
