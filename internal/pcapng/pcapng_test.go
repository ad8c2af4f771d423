package pcapng

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/link/capture"
)

var start = time.Unix(1700000000, 123456789)

// stream returns a capture of n packets, with missed ones between and after them.
func stream(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, "Ethernet 1", 96, start)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		p := capture.Packet{
			Time: start.Add(time.Duration(i)), Length: 4000 + i, Outbound: i%2 == 0, Ethernet: i%3 == 0, InfiniBand: i%3 == 1,
			Missed: uint64(i % 5), Data: bytes.Repeat([]byte{byte(i)}, i%97),
		}
		if err := w.Packet(&p, ""); err != nil {
			t.Fatal(err)
		}
	}
	missed := uint64(7)
	for i := range n {
		missed += uint64(i % 5)
	}
	if err := w.Finish(missed, start.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type read struct {
	Length, Captured int
	Link             layers.LinkType
	Outbound         bool
	Dropped          uint64
	At               time.Duration
}

// packets reads a file with gopacket's reader and returns its packets and the sums of its statistics.
func packets(t testing.TB, b []byte) (all []read, received, dropped uint64) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, info, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		intf, err := r.Interface(info.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		p := read{Length: info.Length, Captured: info.CaptureLength, Link: intf.LinkType, At: info.Timestamp.Sub(start)}
		p.Outbound = options.Flags != nil && options.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound
		if options.DropCount != nil {
			p.Dropped = *options.DropCount
		}
		all = append(all, p)
	}
	for i := range r.NInterfaces() {
		if intf, err := r.Interface(i); err == nil && intf.Statistics.PacketsReceived != pcapgo.NgNoValue64 {
			received += intf.Statistics.PacketsReceived
			dropped += intf.Statistics.PacketsDropped
		}
	}
	return all, received, dropped
}

// A reader finds what the writer was given: length, time, direction and link type of each packet, and the drop
// counts.
func TestWriter(t *testing.T) {
	const n = 40
	all, received, dropped := packets(t, stream(t, n))
	var want []read
	missed := uint64(7)
	for i := range n {
		p := read{4000 + i, i % 97, layers.LinkTypeRaw, i%2 == 0, uint64(i % 5), time.Duration(i)}
		if i%3 == 0 {
			p.Link = layers.LinkTypeEthernet
		}
		if i%3 == 1 {
			p.Link = linkTypeInfiniBand
		}
		want, missed = append(want, p), missed+uint64(i%5)
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Error("the packets differ (-want +got):\n", d)
	}
	if received != n+missed || dropped != missed {
		t.Errorf("statistics: %d received, %d dropped; want %d and %d", received, dropped, n+missed, missed)
	}
}

// However a stream is cut into writes, the files hold its packets in order. Each file can be read by itself and is no
// longer than the limit, and only the newest files are kept.
func TestFiles(t *testing.T) {
	b := stream(t, 200)
	all, _, dropped := packets(t, b)
	dir := t.TempDir()
	const limit, keep = 4096, 3
	f, err := NewFiles(filepath.Join(dir, "dump.pcapng"), limit, keep)
	if err != nil {
		t.Fatal(err)
	}
	feed(t, f, b)
	if written, missed, finished := f.Counts(); written != 200 || missed != dropped || !finished {
		t.Errorf("counts %d written, %d missed, finished %v; want 200, %d, true", written, missed, finished, dropped)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != keep || len(f.Names()) != keep {
		t.Fatalf("%d files, with the names %v; want %d", len(entries), f.Names(), keep)
	}
	var kept []read
	for _, name := range f.Names() {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(file) > limit+256 { // the statistics at the end are always written
			t.Errorf("%s has %d bytes, want at most %d", name, len(file), limit)
		}
		some, _, _ := packets(t, file)
		kept = append(kept, some...)
	}
	if d := cmp.Diff(all[len(all)-len(kept):], kept); d != "" || len(kept) == 0 {
		t.Error("the files do not hold the newest packets (-want +got):\n", d)
	}
}

func feed(t testing.TB, f *Files, b []byte) {
	t.Helper()
	for len(b) > 0 {
		n := min(len(b), 1+rand.IntN(300))
		if _, err := f.Write(b[:n]); err != nil {
			t.Fatal(err)
		}
		b = b[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStreamPassesUnchanged(t *testing.T) {
	b := stream(t, 20)
	var out bytes.Buffer
	feed(t, NewStream(&out), b)
	if !bytes.Equal(out.Bytes(), b) {
		t.Error("the stream has changed")
	}
}

func TestCutShort(t *testing.T) {
	b := stream(t, 3)
	f := NewStream(io.Discard)
	if _, err := f.Write(b[:len(b)-2]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); !errors.Is(err, errFormat) {
		t.Errorf("a stream that ends within a block: %v, want %v", err, errFormat)
	}
}

type full struct{ left int }

func (w *full) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func TestFullDisk(t *testing.T) {
	if _, err := NewStream(&full{500}).Write(stream(t, 20)); err == nil {
		t.Error("a write to a full disk gives no error")
	}
}

func FuzzFiles(f *testing.F) {
	f.Add(stream(f, 5))
	f.Add([]byte{1, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := NewStream(io.Discard)
		w.Write(b)
		w.Close()
	})
}
