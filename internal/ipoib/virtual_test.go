package ipoib

import (
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

// TestINames: an IName is any printable name that starts with an 'i' and has no ':', ',', ';', '-' or ' ' (WinOF
// 5.50, 5.2).
func TestINames(t *testing.T) {
	for name, ok := range map[string]bool{
		"ipoib_4_1": true, "i": true, "i/4\\*": true, "iü": true, "I4": false, "poib": false, "": false, "i:4": false, "i,4": false,
		"i;4": false, "i-4": false, "i 4": false,
		"i\t": false, "i\x00": false, "i" + strings.Repeat("x", 62): true, "i" + strings.Repeat("x", 63): false,
	} {
		var c *ConfigError
		if err := CheckIName(name); (err == nil) != ok || err != nil && !errors.As(err, &c) {
			t.Errorf("%q: %v, want valid %v", name, err, ok)
		}
	}
}

// TestPKeyTexts: a P_Key is written as 4 hexadecimal digits (WinOF 5.50, 5.2); those of base 0 are invalid (IBA
// 10.9.1.1).
func TestPKeyTexts(t *testing.T) {
	for s, want := range map[string]ib.PKey{"F123": 0xf123, "7123": 0x7123, "ffff": 0xffff, "0001": 1, "0000": 0, "8000": 0, "123": 0,
		"0xF1": 0, "F123 ": 0, "+123": 0, "F1234": 0, "": 0, "i123": 0} {
		if got, err := ParsePKey(s); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %#x, %v", s, got, err)
		}
	}
}
