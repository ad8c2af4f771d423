package mad

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

// IBA 13.4.8.1: every bit but the byte before the redirect queue pair, which is reserved
// there and the hop limit for traps, belongs to a field.
func TestClassPortInfoEveryBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, ClassPortInfoLen)
	for range 100 {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		c, err := ParseClassPortInfo(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("% x comes back as % x", b, got)
		}
	}
	if _, err := ParseClassPortInfo(b[:71]); err == nil {
		t.Error("71 bytes were accepted")
	}
}

func TestClassPortInfoAnswer(t *testing.T) {
	request := Header{BaseVersion: 1, Class: ClassCM, ClassVersion: 2, Method: MethodGet, TransactionID: 7, AttributeID: AttrClassPortInfo}
	info := ClassPortInfo{BaseVersion: 1, ClassVersion: 2, CapabilityMask: CapSIDR, RespTime: 18,
		Redirect: ClassAddress{GID: ib.GID{0: 0xfe}, QPN: 1, QKey: ib.QKeyGSI}}
	b := AppendClassPortInfo(nil, request, &info)
	if len(b) != Len {
		t.Fatalf("%d bytes", len(b))
	}
	want := "01070281" + "00000000" + "0000000000000007" + "0001000000000000" + "01022000" + "00000012" + "fe"
	if got := hex.EncodeToString(b); got[:len(want)] != want {
		t.Errorf("%s, want it to begin with %s", got, want)
	}
	if got, err := ParseClassPortInfo(b[HeaderLen:]); err != nil || got != info {
		t.Errorf("%+v, %v", got, err)
	}
}
