package wake

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

var mac = eth.MAC{2, 0xff, 0xff, 3, 4, 5}

// magic returns a magic packet, with what comes before and behind its sequence.
func magic(before, behind []byte) []byte {
	b := make([]byte, eth.EthernetLen)
	b = append(b, before...)
	b = append(b, bytes.Repeat([]byte{0xff}, 6)...)
	b = append(b, bytes.Repeat(mac[:], 16)...)
	return append(b, behind...)
}

func TestMagic(t *testing.T) {
	short := magic(nil, nil)
	wrong := magic(nil, nil)
	wrong[len(wrong)-1]++
	for name, c := range map[string]struct {
		frame []byte
		want  bool
	}{
		"alone": {magic(nil, nil), true}, "in UDP, with a password behind": {magic(make([]byte, 28), make([]byte, 6)), true},
		"more ones before": {magic([]byte{0xff, 0xff, 0, 0xff}, nil), true}, "cut off": {short[:len(short)-1], false},
		"another address": {wrong, false}, "nothing": {nil, false}, "ones": {bytes.Repeat([]byte{0xff}, 1500), false},
	} {
		if got := Magic(c.frame, mac); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	list := []Pattern{{Bytes: []byte{1, 2, 3}, Mask: []byte{0b101}}, {Bytes: []byte{9}, Mask: []byte{1}}}
	for frame, want := range map[string]int{"\x01\x07\x03": 0, "\x01\x02\x04": -1, "\x09": 1, "\x01\x02": -1, "": -1} {
		if got := Matches(list, []byte(frame)); got != want {
			t.Errorf("%q matches %d, want %d", frame, got, want)
		}
	}
	for want, p := range map[string]Pattern{
		"length of the pattern is 0, want 1 to 128 bytes":                           {},
		"length of the pattern is 129, want 1 to 128 bytes":                         {Bytes: make([]byte, 129)},
		"mask's length of the pattern is 1, want 2 bytes, with a bit for each byte": {Bytes: make([]byte, 9), Mask: []byte{1}},
	} {
		if err := p.Check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// FuzzMagic: what is said to be a magic packet contains its sequence.
func FuzzMagic(f *testing.F) {
	f.Add(magic(nil, nil))
	f.Add(magic([]byte{0xff, 0}, []byte{1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		want := len(b) >= eth.EthernetLen && bytes.Contains(b[eth.EthernetLen:], magic(nil, nil)[eth.EthernetLen:])
		if got := Magic(b, mac); got != want {
			t.Fatalf("%t, want %t", got, want)
		}
	})
}
