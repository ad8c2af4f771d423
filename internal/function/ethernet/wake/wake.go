// Package wake recognizes the frames that wake a sleeping host (Wake-on-LAN; "WinOF-2 Ethernet Network", Wake-on-LAN): magic
// packets, and frames that match a pattern.
package wake

import (
	"bytes"
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// synchronization is with what a magic packet's sequence begins, repeats how often the address follows.
	synchronization = 6
	repeats         = 16
)

// Magic reports whether a frame is a magic packet for an address: somewhere behind the Ethernet header it has six bytes of
// ones and sixteen times the address.
func Magic(frame []byte, mac eth.MAC) bool {
	const length = synchronization + repeats*len(mac)
	if len(frame) < eth.EthernetLen {
		return false
	}
	for b := frame[eth.EthernetLen:]; len(b) >= length; b = b[1:] {
		at := bytes.IndexByte(b, 0xff)
		if at < 0 || len(b)-at < length {
			return false
		}
		if b = b[at:]; sequence(b, mac) {
			return true
		}
	}
	return false
}

// sequence reports whether a magic packet's sequence is at the front of b, which is long enough for it.
func sequence(b []byte, mac eth.MAC) bool {
	for _, x := range b[:synchronization] {
		if x != 0xff {
			return false
		}
	}
	b = b[synchronization:]
	for i := range repeats {
		if eth.MAC(b[i*len(mac):]) != mac {
			return false
		}
	}
	return true
}

// MaxPattern is the longest pattern in bytes.
const MaxPattern = 128

// Pattern is what the first bytes of a frame are compared with.
type Pattern struct {
	// Bytes are from the destination address on.
	Bytes []byte
	// Mask has a bit for each of them, the lowest of the first byte for the first one, that counts. The others do not.
	Mask []byte
}

// PatternError is an invalid pattern.
type PatternError struct {
	Field string
	Got   int
	Want  string
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("%s of the pattern is %d, want %s", e.Field, e.Got, e.Want)
}

// Check checks a pattern. The error is a *PatternError.
func (p *Pattern) Check() error {
	if n := len(p.Bytes); n == 0 || n > MaxPattern {
		return &PatternError{"length", n, "1 to 128 bytes"}
	}
	if n, want := len(p.Mask), (len(p.Bytes)+7)/8; n != want {
		return &PatternError{"mask's length", n, fmt.Sprintf("%d bytes, with a bit for each byte", want)}
	}
	return nil
}

// Matches returns the index of the first pattern that a frame matches; -1: none.
func Matches(patterns []Pattern, frame []byte) int {
	for i := range patterns {
		if patterns[i].matches(frame) {
			return i
		}
	}
	return -1
}

func (p *Pattern) matches(frame []byte) bool {
	if len(frame) < len(p.Bytes) {
		return false
	}
	for i, b := range p.Bytes {
		if p.counts(i) && frame[i] != b {
			return false
		}
	}
	return true
}
