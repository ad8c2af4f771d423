package interop

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/captures"
)

// TestCheckerFindsWhatIsWrong makes sure that icrc.py, on which every run relies, passes good packets and fails on
// each kind of fault that it is there to find.
func TestCheckerFindsWhatIsWrong(t *testing.T) {
	systemtest.Programs(t, "python3")
	all, err := captures.All()
	ok(t, err)
	var good [][]byte
	for _, r := range all {
		if r.Name == "sendbw" {
			good = r.Frames
		}
	}
	change := func(f func(frame []byte) []byte) [][]byte {
		frames := append([][]byte(nil), good...)
		frames[1] = f(bytes.Clone(frames[1]))
		return frames
	}
	for _, c := range []struct {
		name   string
		frames [][]byte
		mtu    string
		says   string
	}{
		{"good", good, "1500", "="},
		{"payload changed", change(func(f []byte) []byte { f[len(f)-10] ^= 1; return f }), "1500", "bad ICRC"},
		{"source port changed", change(func(f []byte) []byte { f[35] ^= 1; return f }), "1500", "bad ICRC"},
		{"cut", change(func(f []byte) []byte { return f[:len(f)-4] }), "1500", "frame has"},
		{"UDP length", change(func(f []byte) []byte { f[39]--; return f }), "1500", "UDP length"},
		{"fragment", change(func(f []byte) []byte { f[20] |= 0x20; return f }), "1500", "fragment"},
		{"larger than the MTU", good, "100", "MTU 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.pcap")
			ok(t, os.WriteFile(file, pcap(c.frames), 0o644))
			out, err := exec.Command("python3", "icrc.py", c.mtu, file).CombinedOutput()
			if wrong := err != nil; wrong != (c.name != "good") {
				t.Errorf("icrc.py: %v\n%s", err, out)
			}
			if !strings.Contains(string(out), c.says) {
				t.Errorf("icrc.py does not say %q:\n%s", c.says, out)
			}
		})
	}
}

// TestTrim: a capture whose last packet is cut anywhere ends with the one before it, and a whole one stays as it is.
func TestTrim(t *testing.T) {
	frames := [][]byte{[]byte("first frame"), []byte("second"), []byte("the last")}
	all, before := pcap(frames), pcap(frames[:2])
	for n := len(before); n <= len(all); n++ {
		file := filepath.Join(t.TempDir(), "x.pcap")
		ok(t, os.WriteFile(file, all[:n], 0o644))
		ok(t, trim(file))
		want := before
		if n == len(all) {
			want = all
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes %d are left (%v), want %d", n, len(got), err, len(want))
		}
	}
}

// pcap returns a capture file with these frames.
func pcap(frames [][]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 4<<16|2)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 65535), 1)
	for _, f := range frames {
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

// TestLastFrames: of a capture that is cut in its last packet, the last whole ones.
func TestLastFrames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pcap")
	all := pcap([][]byte{[]byte("first"), []byte("second"), []byte("third"), []byte("cut")})
	ok(t, os.WriteFile(file, all[:len(all)-1], 0o644))
	got, err := lastFrames(file, 2)
	ok(t, err)
	if want := [][]byte{[]byte("second"), []byte("third")}; !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}
