package ib

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCreditCodes(t *testing.T) {
	for _, c := range []struct {
		code uint8
		n    uint32
	}{{0, 0}, {3, 3}, {4, 4}, {5, 6}, {6, 8}, {7, 12}, {14, 128}, {15, 192}, {24, 4096}, {30, 32768}} {
		if n, limited := Credits(c.code); n != c.n || !limited {
			t.Errorf("Credits(%d) = %d, %v, want %d, true", c.code, n, limited, c.n)
		}
	}
	if _, limited := Credits(CreditInvalid); limited {
		t.Error("code 31 must mean no limit")
	}
}

// A responder must not promise more receives than are posted.
func TestCreditCodeNeverPromisesTooMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Uint32Range(0, 64), rapid.Uint32()).Draw(t, "n")
		code := CreditCode(n)
		got, limited := Credits(code)
		if !limited || got > n {
			t.Fatalf("CreditCode(%d) = %d, which promises %d", n, code, got)
		}
		if next, limited := Credits(code + 1); limited && next <= n {
			t.Fatalf("CreditCode(%d) = %d, but code %d promises %d", n, code, code+1, next)
		}
	})
}

func TestRNRTimers(t *testing.T) {
	for code, want := range map[uint8]time.Duration{
		0: 655360 * time.Microsecond, 1: 10 * time.Microsecond, 4: 40 * time.Microsecond, 5: 60 * time.Microsecond,
		12: 640 * time.Microsecond, 14: 1280 * time.Microsecond, 18: 5120 * time.Microsecond, 31: 491520 * time.Microsecond,
	} {
		if got := RNRTimer(code); got != want {
			t.Errorf("RNRTimer(%d) = %v, want %v", code, got, want)
		}
	}
	for code := range uint8(32) {
		if got := RNRTimerCode(RNRTimer(code)); got != code {
			t.Errorf("RNRTimerCode(RNRTimer(%d)) = %d", code, got)
		}
	}
	if got := RNRTimerCode(0); got != 1 {
		t.Errorf("no wait is code %d, want 1, the shortest", got)
	}
	if got := RNRTimerCode(time.Second); got != 0 {
		t.Errorf("a second is code %d, want 0, the longest", got)
	}
}

func TestAckTimeouts(t *testing.T) {
	for code, want := range map[uint8]time.Duration{
		0: 0, 1: 8192 * time.Nanosecond, 14: 67108864 * time.Nanosecond, 31: 4096 * time.Nanosecond << 31,
	} {
		if got := AckTimeout(code); got != want {
			t.Errorf("AckTimeout(%d) = %v, want %v", code, got, want)
		}
	}
	for code := range uint8(32) {
		if got := AckTimeoutCode(AckTimeout(code)); got != code {
			t.Errorf("AckTimeoutCode(AckTimeout(%d)) = %d", code, got)
		}
		if got := CMTimeoutCode(CMTimeout(code)); got != code {
			t.Errorf("CMTimeoutCode(CMTimeout(%d)) = %d", code, got)
		}
	}
	if got := AckTimeoutCode(10 * time.Hour); got != 31 {
		t.Errorf("ten hours is code %d, want 31", got)
	}
	if got := AckTimeoutCode(8193 * time.Nanosecond); got != 2 {
		t.Errorf("8193 ns is code %d, want 2: never shorter than asked", got)
	}
}

func TestMTUCodes(t *testing.T) {
	for m, want := range map[MTU]int{0: 0, 1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096, 6: 0, 255: 0} {
		if got := m.Bytes(); got != want {
			t.Errorf("MTU(%d).Bytes() = %d, want %d", m, got, want)
		}
	}
	for _, c := range []struct {
		n  int
		m  MTU
		ok bool
	}{{-1, 0, false}, {255, 0, false}, {256, MTU256, true}, {1436, MTU1024, true}, {4095, MTU2048, true}, {9000, MTU4096, true}} {
		if m, ok := MTUFor(c.n); m != c.m || ok != c.ok {
			t.Errorf("MTUFor(%d) = %v, %v, want %v, %v", c.n, m, ok, c.m, c.ok)
		}
	}
}

func TestSyndromes(t *testing.T) {
	for _, c := range []struct {
		s    Syndrome
		kind int
		text string
	}{
		{ACK(31), SyndromeACK, "ACK credits=unlimited"},
		{ACK(8), SyndromeACK, "ACK credits=16"},
		{RNR(18), SyndromeRNR, "RNR NAK timer=18"},
		{NAKSequence, SyndromeNAK, "NAK PSN sequence error"},
		{NAKInvalidRequest, SyndromeNAK, "NAK invalid request"},
		{NAKRemoteAccess, SyndromeNAK, "NAK remote access error"},
		{NAKRemoteOperational, SyndromeNAK, "NAK remote operational error"},
		{NAKInvalidRDRequest, SyndromeNAK, "NAK invalid RD request"},
		{0x7f, SyndromeNAK, "reserved syndrome 0x7f"},
		{0x40, SyndromeUnused, "reserved syndrome 0x40"},
	} {
		if c.s.Kind() != c.kind || c.s.String() != c.text {
			t.Errorf("%#x: kind %d, %q, want %d, %q", uint8(c.s), c.s.Kind(), c.s, c.kind, c.text)
		}
	}
	if RNR(18) != 0x32 {
		t.Errorf("RNR(18) = %#x, want 0x32", uint8(RNR(18)))
	}
}

// IBA 10.9.3: same partition, valid, and at least one side a full member.
func TestPKeyMatch(t *testing.T) {
	for _, c := range []struct {
		a, b PKey
		want bool
	}{
		{0xffff, 0xffff, true}, {0xffff, 0x7fff, true}, {0x7fff, 0xffff, true}, {0x7fff, 0x7fff, false},
		{0x8001, 0x8001, true}, {0x8001, 0x0001, true}, {0x0001, 0x0001, false}, {0x8001, 0x8002, false},
		{0x8000, 0x8000, false}, {0x0000, 0x8000, false}, {0xffff, 0x8000, false},
	} {
		if got := PKeyMatch(c.a, c.b); got != c.want {
			t.Errorf("PKeyMatch(%#x, %#x) = %v", c.a, c.b, got)
		}
	}
}
