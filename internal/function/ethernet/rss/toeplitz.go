package rss

import (
	"encoding/binary"
	"sync"
)

// KeyLen is the length of a secret key.
const KeyLen = 40

// Key is the secret key of a hash.
type Key [KeyLen]byte

// DefaultKey is the one with which Microsoft's documentation verifies hashes.
var DefaultKey = Key{
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
}

// mostInput is the longest input: two IPv6 addresses and two ports.
const mostInput = KeyLen - 4

// Toeplitz computes hashes with one key. The hash of an input is the exclusive or of those 32 bits of the key, for each bit
// of the input that is set, that begin where it stands. So each byte of the input contributes one of 256 words, which the
// tables have for every place: 36 KB, of which TCP over IPv4 uses 12.
type Toeplitz struct {
	tables [mostInput][256]uint32
}

// byDefault is the hash with the default key, which is made once: it does not change.
var byDefault = sync.OnceValue(func() *Toeplitz { return tabulate(&DefaultKey) })

// NewToeplitz returns the hash with a key.
func NewToeplitz(k *Key) *Toeplitz {
	if *k == DefaultKey {
		return byDefault()
	}
	return tabulate(k)
}

func tabulate(k *Key) *Toeplitz {
	t := new(Toeplitz)
	for place := range t.tables {
		window := binary.BigEndian.Uint64(append(k[place:place+5:place+5], 0, 0, 0))
		table := &t.tables[place]
		for bit := range 8 {
			word := uint32(window << bit >> 32)
			for rest := 0; rest < 1<<bit; rest++ { // values whose highest bits are rest and this one, and no others
				table[rest<<(8-bit)|0x80>>bit] = table[rest<<(8-bit)] ^ word
			}
		}
	}
	return t
}

// IPv4 returns the hash of two IPv4 addresses as they are in a packet.
func (t *Toeplitz) IPv4(src, dst *[4]byte) uint32 {
	a, b, c := &t.tables, src, dst
	return a[0][b[0]] ^ a[1][b[1]] ^ a[2][b[2]] ^ a[3][b[3]] ^ a[4][c[0]] ^ a[5][c[1]] ^ a[6][c[2]] ^ a[7][c[3]]
}

// IPv6 returns the hash of two IPv6 addresses as they are in a packet.
func (t *Toeplitz) IPv6(src, dst *[16]byte) (h uint32) {
	for i, b := range src {
		h ^= t.tables[i][b]
	}
	for i, b := range dst {
		h ^= t.tables[16+i][b]
	}
	return h
}

// Sum returns the hash of any input, of at most 36 bytes.
func (t *Toeplitz) Sum(input []byte) (h uint32) {
	for i, b := range input {
		h ^= t.tables[i][b]
	}
	return h
}

// ports returns what two ports, as they are in a packet, add to the hash of addresses that take n bytes.
func (t *Toeplitz) ports(n int, src, dst *[2]byte) uint32 {
	a := t.tables[n : n+4 : n+4]
	return a[0][src[0]] ^ a[1][src[1]] ^ a[2][dst[0]] ^ a[3][dst[1]]
}
