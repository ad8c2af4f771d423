package rdmanet

import (
	"bytes"
	"testing"
)

func TestHeaderRefusesWhatNobodySends(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
	}{
		{"empty", nil},
		{"short", []byte{1, 0, 0, 0, 0, 0, 0}},
		{"kind 0", make([]byte, 9)},
		{"kind 4", []byte{4, 0, 0, 0, 0, 0, 0, 0}},
		{"reserved bytes", []byte{1, 1, 0, 0, 0, 0, 0, 0, 9}},
		{"data without data", []byte{1, 0, 0, 0, 0, 0, 0, 0}},
		{"credit with data", []byte{2, 0, 0, 0, 0, 0, 0, 0, 9}},
	} {
		if h, err := parseHeader(c.b); err == nil {
			t.Errorf("%s: %x gives %+v, want an error", c.name, c.b, h)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 3, 0, 0, 0, 42})
	f.Add([]byte{3, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		var again [headerSize]byte
		h.put(again[:])
		if !bytes.Equal(again[:], b[:headerSize]) {
			t.Fatalf("%x encodes as %x", b[:headerSize], again)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(hello{buffers: 16, size: 16 << 10}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			return
		}
		if !bytes.Equal(h.encode(), b[:helloSize]) {
			t.Fatalf("%x encodes as %x", b[:helloSize], h.encode())
		}
	})
}
