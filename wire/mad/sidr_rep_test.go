package mad

import (
	"errors"
	"testing"
)

func TestSIDRREPEveryBit(t *testing.T) {
	// The info length is kept below 64: more than 72 is refused.
	checkEveryBit(t, AttrSIDRREP, map[int]byte{29: 0xc0, 30: 0xff, 31: 0xff, 35: 0xff})
}

// IBA 12.11.2.
func TestSIDRREPLayout(t *testing.T) {
	m := SIDRREP{RequestID: 0x01020304, Status: SIDRNoQP, InfoLength: 72, QPN: 0x111213, ServiceID: 0x2122232425262728, QKey: 0x01234567,
		Info: [72]byte{0: 1, 71: 2}, PrivateData: [136]byte{0: 3, 135: 4}}
	checkAt(t, &m, map[int]string{16: "0018", 24: "01020304", 28: "03480000", 32: "11121300", 36: "2122232425262728", 44: "01234567",
		48: "01", 119: "0203", 255: "04"})
}

func TestSIDRREPInfoLengthIsBounded(t *testing.T) {
	b := (&SIDRREP{InfoLength: 73}).Append(nil)
	var e *Error
	if _, err := ParseSIDRREP(b); !errors.As(err, &e) || e.Field != "SIDR additional info length" {
		t.Errorf("73 bytes of info: %v", err)
	}
}

func TestSIDRStatusNames(t *testing.T) {
	if got := SIDRUnsupportedService.String(); got != "service ID not supported" {
		t.Errorf("status 1 is %q", got)
	}
	if got := SIDRStatus(6).String(); got != "SIDR status 6" {
		t.Errorf("status 6 is %q", got)
	}
}
