package ib

import (
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The local packet of IBA 7.8.4 "Sample Packets": an RC write from LID 0x17d2 to 0x375c.
const samplePacket = "7012375c000e17d2" + "0a2024870087b1b3000dec2a" + "01710a1c015d400238f27a050000000e" +
	"bb884d85fd5cfba4728bc0690ed40000"

func TestICRCOfTheSpecificationsSample(t *testing.T) {
	b, err := hex.DecodeString(samplePacket)
	if err != nil {
		t.Fatal(err)
	}
	var s ICRCScratch
	crc := ICRCUpdate(ICRCSeedLRH(&s, b[:LRHLen], nil, b[LRHLen:LRHLen+BTHLen]), b[LRHLen+BTHLen:])
	out := make([]byte, ICRCLen)
	PutICRC(out, crc)
	if got := hex.EncodeToString(out); got != "9625b75a" {
		t.Errorf("ICRC %s, want 9625b75a", got)
	}
	if ICRC(out) != crc {
		t.Errorf("ICRC reads back as %#x, want %#x", ICRC(out), crc)
	}
}

// IBA 7.8.1: what routers may change is not covered; everything else is.
func TestICRCMasks(t *testing.T) {
	type seed func(s *ICRCScratch, b []byte) uint32
	v4 := func(s *ICRCScratch, b []byte) uint32 { return ICRCSeedIPv4(s, b[:20], b[20:28], b[28:40]) }
	v4opts := func(s *ICRCScratch, b []byte) uint32 { return ICRCSeedIPv4(s, b[:60], b[60:68], b[68:80]) }
	v6 := func(s *ICRCScratch, b []byte) uint32 { return ICRCSeedIPv6(s, b[:40], b[40:48], b[48:60]) }
	grh := func(s *ICRCScratch, b []byte) uint32 { return ICRCSeedGRH(s, b[:40], b[40:52]) }
	lrh := func(s *ICRCScratch, b []byte) uint32 { return ICRCSeedLRH(s, b[:8], nil, b[8:20]) }
	lrhGRH := func(s *ICRCScratch, b []byte) uint32 { return ICRCSeedLRH(s, b[:8], b[8:48], b[48:60]) }
	for _, c := range []struct {
		name   string
		seed   seed
		length int
		masks  map[int]byte // the bits that are masked
	}{
		{"IPv4", v4, 40, map[int]byte{1: 0xff, 8: 0xff, 10: 0xff, 11: 0xff, 26: 0xff, 27: 0xff, 32: 0xff}},
		{"IPv4 with options", v4opts, 80, map[int]byte{1: 0xff, 8: 0xff, 10: 0xff, 11: 0xff, 66: 0xff, 67: 0xff, 72: 0xff}},
		{"IPv6", v6, 60, map[int]byte{0: 0x0f, 1: 0xff, 2: 0xff, 3: 0xff, 7: 0xff, 46: 0xff, 47: 0xff, 52: 0xff}},
		{"GRH", grh, 52, map[int]byte{0: 0x0f, 1: 0xff, 2: 0xff, 3: 0xff, 7: 0xff, 44: 0xff}},
		{"LRH", lrh, 20, map[int]byte{0: 0xf0, 12: 0xff}},
		{"LRH and GRH", lrhGRH, 60, map[int]byte{0: 0xff, 1: 0xff, 2: 0xff, 3: 0xff, 4: 0xff, 5: 0xff, 6: 0xff, 7: 0xff,
			8: 0x0f, 9: 0xff, 10: 0xff, 11: 0xff, 15: 0xff, 52: 0xff}},
	} {
		var s ICRCScratch
		b := make([]byte, c.length)
		for i := range b {
			b[i] = byte(i * 7)
		}
		want := c.seed(&s, b)
		for i := range b {
			for bit := byte(1); bit != 0; bit <<= 1 {
				b[i] ^= bit
				if same, masked := c.seed(&s, b) == want, c.masks[i]&bit != 0; same != masked {
					t.Errorf("%s: byte %d bit %#02x: masked %v, want %v", c.name, i, bit, same, masked)
				}
				b[i] ^= bit
			}
		}
	}
}

func TestICRCDoesNotAllocate(t *testing.T) {
	s, b := new(ICRCScratch), make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		crc := ICRCSeedIPv4(s, b[:20], b[20:28], b[28:40])
		crc = ICRCUpdate(crc, b[40:])
		_, _ = SolveID(crc, crc^1, 4000)
		PutICRC(b, crc)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever the identification and the length, it is found again; and with a start other
// than 0, the exclusive or of both is.
func TestSolveIDFindsTheIdentification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, maxBack-2)).Draw(t, "after")
		id, base := rapid.Uint16().Draw(t, "id"), rapid.Uint16().Draw(t, "base")
		b := make([]byte, 6+n)
		rng := rand.NewChaCha8([32]byte{byte(rapid.Byte().Draw(t, "seed"))})
		_, _ = rng.Read(b)
		b[4], b[5] = byte(base>>8), byte(base)
		computed := crc32.ChecksumIEEE(b)
		b[4], b[5] = byte(id>>8), byte(id)
		if got, ok := SolveID(computed, crc32.ChecksumIEEE(b), n); !ok || got != id^base {
			t.Fatalf("identification %#x found as %#x, %v", id^base, got, ok)
		}
	})
}

// Changes after the identification are taken for another identification no more often than chance has it.
func TestSolveIDRefusesCorruptPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 1096)
	good := crc32.ChecksumIEEE(b)
	wrong := 0
	const tries = 200000
	for range tries {
		b[6+rng.IntN(len(b)-6)] ^= 0x10
		if _, ok := SolveID(good, crc32.ChecksumIEEE(b), len(b)-6); ok {
			wrong++
		}
	}
	// 2^-16 of the tries, about 3, are expected to slip through.
	if wrong > 20 {
		t.Errorf("%d of %d corrupt packets were accepted", wrong, tries)
	}
	if _, ok := SolveID(0, 1, 1<<16); ok {
		t.Error("a length beyond a datagram's was accepted")
	}
}

func TestVCRC(t *testing.T) {
	b, err := hex.DecodeString(samplePacket + "9625b75a")
	if err != nil {
		t.Fatal(err)
	}
	// Bit by bit from the definition: seed of ones, least significant bit of each byte first, complemented.
	reg := uint16(0xffff)
	for _, x := range b {
		for i := range 8 {
			in := uint16(x>>i) & 1
			top := reg >> 15
			reg <<= 1
			if top^in != 0 {
				reg ^= 0x100b
			}
		}
	}
	var want uint16 // the first bit out is the low bit of the first byte
	for i := range 16 {
		want |= (^reg >> i & 1) << (15 - i)
	}
	if got := VCRC(b); got != want {
		t.Errorf("VCRC %#04x, want %#04x", got, want)
	}
	if b[10] ^= 4; VCRC(b) == want {
		t.Error("a changed bit is not seen")
	}
	out := make([]byte, VCRCLen)
	if PutVCRC(out, 0x1234); out[0] != 0x34 || out[1] != 0x12 {
		t.Errorf("VCRC is written as % x", out)
	}
}

func BenchmarkICRCSeedIPv4(b *testing.B) {
	s, p := new(ICRCScratch), make([]byte, 40)
	b.ReportAllocs()
	for b.Loop() {
		ICRCSeedIPv4(s, p[:20], p[20:28], p[28:40])
	}
}

func BenchmarkSolveID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		SolveID(0x12345678, 0x9abcdef0, 4146)
	}
}

func TestICRCWordIsAnUpdateOfFourBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc, b := rapid.Uint32().Draw(t, "crc"), rapid.SliceOfN(rapid.Byte(), 4, 8).Draw(t, "bytes")
		if got, want := ICRCWord(crc, b), ICRCUpdate(crc, b[:4]); got != want {
			t.Fatalf("%#x, want %#x", got, want)
		}
	})
}

// The tables make what the library makes, of any length, from any value on.
func TestICRCSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc, b := rapid.Uint32().Draw(t, "crc"), rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "bytes")
		if got, want := icrcSlices(crc, b), crc32.Update(crc, crc32.IEEETable, b); got != want {
			t.Errorf("%#x, want %#x", got, want)
		}
	})
}

// Beside the library's, which multiplies where the processor can: see multiplicationPays.
func BenchmarkICRC(b *testing.B) {
	p := make([]byte, 1024)
	for _, c := range []struct {
		name   string
		update func(uint32, []byte) uint32
	}{{"tables", icrcSlices}, {"library", func(crc uint32, p []byte) uint32 { return crc32.Update(crc, crc32.IEEETable, p) }}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				c.update(0, p)
			}
		})
	}
}
