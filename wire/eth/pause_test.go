package eth

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pauses are frames that a program written elsewhere made, without the padding to 60 bytes.
var pauses = []struct {
	name, frame string
	want        Pause
}{
	{"pause", "0180c2000001020000000a0188080001ffff", Pause{Quanta: [8]uint16{0xffff}}},
	{"resume", "0180c2000001020000000a01880800010000", Pause{}},
	{"priority 3", "0180c2000001020000000a01880801010008000000000000ffff", Pause{PerPriority: true, Enabled: 1 << 3, Quanta: [8]uint16{3: 0xffff}}},
	{"priority 3 resumes", "0180c2000001020000000a01880801010008", Pause{PerPriority: true, Enabled: 1 << 3}},
	{"three priorities", "0180c2000001020000000a018808010100890001000000001234000000000000ffff",
		Pause{PerPriority: true, Enabled: 0x89, Quanta: [8]uint16{0: 1, 3: 0x1234, 7: 0xffff}}},
	{"all priorities", "0180c2000001020000000a018808010100ff00000100020003000400050006000700",
		Pause{PerPriority: true, Enabled: 0xff, Quanta: [8]uint16{0, 0x100, 0x200, 0x300, 0x400, 0x500, 0x600, 0x700}}},
}

// TestPause_Frames: frames are byte for byte those of IEEE 802.3, annexes 31B and 31D.
func TestPause_Frames(t *testing.T) {
	for _, c := range pauses {
		c.want.Src = MAC{2, 0, 0, 0, 0x0a, 1}
		b, err := hex.DecodeString(c.frame + strings.Repeat("00", PauseLen-len(c.frame)/2))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.want.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("%s:\n% x, want\n% x", c.name, got, b)
		}
		if got, err := ParsePause(b); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// TestPause_ReadsBack: what is written reads back; classes that are not enabled have no time.
func TestPause_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pause{Src: MAC{2, 1}, PerPriority: rapid.Bool().Draw(t, "per priority")}
		if p.PerPriority {
			p.Enabled = rapid.Byte().Draw(t, "enabled")
		}
		for i := range p.Quanta {
			p.Quanta[i] = rapid.Uint16().Draw(t, "quanta")
		}
		got, err := ParsePause(p.Append(nil))
		for i := range p.Quanta {
			if p.PerPriority && p.Enabled>>i&1 == 0 || !p.PerPriority && i > 0 {
				p.Quanta[i] = 0
			}
		}
		if err != nil || got != p {
			t.Fatalf("%+v, %v, want %+v", got, err, p)
		}
	})
}

// TestParsePause_Refuses: frames that are cut off, or no pauses, are errors that name the reason.
func TestParsePause_Refuses(t *testing.T) {
	whole := (&Pause{PerPriority: true}).Append(nil)
	var length *LengthError
	for _, n := range []int{0, 13, 17, 33} {
		if _, err := ParsePause(whole[:n]); !errors.As(err, &length) || length.Got != n {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	var field *FieldError
	other := bytes.Clone(whole)
	other[15] = 0x02
	if _, err := ParsePause(other); !errors.As(err, &field) || field.Field != "MAC control opcode" {
		t.Error(err)
	}
	other[12] = 8
	if _, err := ParsePause(other); !errors.As(err, &field) || field.Field != "ethernet type" {
		t.Error(err)
	}
}

// TestPauseTime: the longest pause is 838.848 us at 40 Gb/s and 3.36 s at 10 Mb/s.
func TestPauseTime(t *testing.T) {
	if got := PauseTime(0xffff, 40e9); got != 838848*time.Nanosecond {
		t.Error(got)
	}
	if got := PauseTime(0xffff, 10e6); got != 3355392*time.Microsecond {
		t.Error(got)
	}
}

// FuzzParsePause: whatever is decoded is written to bytes that decode to the same.
func FuzzParsePause(f *testing.F) {
	for _, c := range pauses {
		b, _ := hex.DecodeString(c.frame)
		f.Add(append(b, make([]byte, PauseLen-len(b))...))
	}
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePause(b)
		if err != nil {
			return
		}
		if again, err := ParsePause(p.Append(nil)); err != nil || again != p {
			t.Errorf("%+v, %v, want %+v", again, err, p)
		}
	})
}
