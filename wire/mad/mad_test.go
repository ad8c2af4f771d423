package mad

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"
)

// random is a CM MAD of attr with random contents and the reserved bits zero. reserved
// maps offsets to the bits that are.
func random(attr uint16, seed uint64, reserved map[int]byte) []byte {
	b, p := start(nil, attr, seed*0x9e3779b97f4a7c15)
	rng := rand.New(rand.NewPCG(seed, uint64(attr)))
	for i := HeaderLen; i < Len; i++ {
		p[i] = byte(rng.Uint32()) &^ reserved[i]
	}
	return b
}

// bytesOf is the reserved map of whole bytes.
func bytesOf(ranges ...[2]int) map[int]byte {
	m := map[int]byte{}
	for _, r := range ranges {
		for i := r[0]; i < r[1]; i++ {
			m[i] = 0xff
		}
	}
	return m
}

func with(m map[int]byte, more map[int]byte) map[int]byte {
	for k, v := range more {
		m[k] |= v
	}
	return m
}

// checkEveryBit proves that each bit of the message which is not reserved belongs to a
// field: what is decoded encodes to the same 256 bytes.
func checkEveryBit(t *testing.T, attr uint16, reserved map[int]byte) {
	t.Helper()
	for seed := range uint64(200) {
		b := random(attr, seed, reserved)
		m, err := DecodeCM(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Append([]byte("in front"))[8:]; !bytes.Equal(got, b) {
			t.Fatalf("decoded\n%s and encoded\n%s", hex.Dump(b), hex.Dump(got))
		}
		if m.Attribute() != attr || m.Transaction() != seed*0x9e3779b97f4a7c15 {
			t.Fatalf("attribute %#x, transaction %#x", m.Attribute(), m.Transaction())
		}
		for at, mask := range reserved {
			for bit := byte(1); bit != 0; bit <<= 1 {
				if mask&bit == 0 || seed > 0 {
					continue
				}
				b[at] |= bit
				if m, err := DecodeCM(b); err == nil && m.Append(nil)[at]&bit != 0 {
					t.Fatalf("reserved bit %#02x of byte %d is sent", bit, at)
				}
				b[at] &^= bit
			}
		}
	}
}

// checkAt compares the bytes of a message with a table of offsets and hexadecimal values.
func checkAt(t *testing.T, m Message, want map[int]string) {
	t.Helper()
	b := m.Append(nil)
	if len(b) != Len {
		t.Fatalf("%d bytes, want %d", len(b), Len)
	}
	for at, h := range want {
		w, err := hex.DecodeString(h)
		if err != nil {
			t.Fatal(err)
		}
		if got := b[at : at+len(w)]; !bytes.Equal(got, w) {
			t.Errorf("offset %d: % x, want % x", at, got, w)
		}
	}
}

func TestHeaderLayout(t *testing.T) {
	checkAt(t, &RTU{TransactionID: 0x1122334455667788}, map[int]string{
		0: "01070203", 4: "0000", 6: "0000", 8: "1122334455667788", 16: "0014", 18: "0000", 20: "00000000",
	})
}

func TestHeaderReadsBack(t *testing.T) {
	h := Header{1, 2, 3, 4, 5, 6, 7, 8, 9}
	b := append(h.Append(nil), make([]byte, Len-HeaderLen)...)
	if got, err := ParseHeader(b); err != nil || got != h {
		t.Errorf("%+v, %v, want %+v", got, err, h)
	}
}

func TestDecodeCMRefuses(t *testing.T) {
	good := (&REQ{}).Append(nil)
	change := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name, field string
		b           []byte
	}{
		{"nothing", "length", nil},
		{"short", "length", good[:255]},
		{"long", "length", append(bytes.Clone(good), 0)},
		{"base version", "base version", change(0, 2)},
		{"another class", "management class", change(1, ClassSubnetAdm)},
		{"class version", "class version", change(2, 1)},
		{"method", "method", change(3, MethodGet)},
		{"attribute", "attribute ID", change(17, 0x1b)},
		{"ClassPortInfo", "attribute ID", change(17, AttrClassPortInfo)},
	} {
		m, err := DecodeCM(c.b)
		var e *Error
		if !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%s: %v, want an error about %q", c.name, err, c.field)
		}
		if m != nil {
			t.Errorf("%s: a message came with the error", c.name)
		}
	}
	if _, err := ParseREP(good); err == nil {
		t.Error("a REQ was read as a REP")
	}
}

// FuzzDecodeCM: no bytes make a decoder panic, and what one accepts is stable: encoded and
// decoded again it is the same message.
func FuzzDecodeCM(f *testing.F) {
	for attr := uint16(AttrREQ); attr <= AttrAPR; attr++ {
		f.Add(random(attr, 1, map[int]byte{32: 0xff, 33: 0xff, 29: 0xff}))
		b, _ := start(nil, attr, 1)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = ParseClassPortInfo(b)
		m, err := DecodeCM(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v is not an *Error", err)
			}
			return
		}
		once := m.Append(nil)
		again, err := DecodeCM(once)
		if err != nil {
			t.Fatalf("what was encoded is refused: %v", err)
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Fatalf("encodes to\n%s then to\n%s", hex.Dump(once), hex.Dump(twice))
		}
	})
}
