package ib

import "fmt"

// MTU is the code of a payload size (IBA 14.2.5.6): 1 to 5 for 256 to 4096 bytes. The zero value is no MTU.
type MTU uint8

// The MTU codes.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// Valid reports whether m is one of the five codes.
func (m MTU) Valid() bool { return m >= MTU256 && m <= MTU4096 }

// Bytes is the payload size, 0 for an invalid code.
func (m MTU) Bytes() int {
	if !m.Valid() {
		return 0
	}
	return 128 << m
}

// String is the size in bytes, or the code if it is invalid.
func (m MTU) String() string {
	if !m.Valid() {
		return fmt.Sprintf("invalid MTU code %d", uint8(m))
	}
	return fmt.Sprint(m.Bytes())
}

// MTUFor is the largest MTU whose payload is at most n bytes; ok is false if n < 256.
func MTUFor(n int) (m MTU, ok bool) {
	for m = MTU4096; m >= MTU256; m-- {
		if m.Bytes() <= n {
			return m, true
		}
	}
	return 0, false
}
