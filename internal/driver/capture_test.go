package driver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/softvpi/softvpi/internal/driver/captures"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// TestCaptureOfARunningDriver: a capture of a running driver shows the packets of a connection that would otherwise
// use the local path, and ends with its statistics when it is stopped.
func TestCaptureOfARunningDriver(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	admin := NewAdmin(cfg.Socket)
	id, stream, err := admin.StartCapture(ctx, CaptureRequest{Adapter: "left", Snap: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	h, err := verbs.Attach(ctx, cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := ping(ctx, h, cfg.Adapters[0].Address, cfg.Adapters[1].Address); err != nil {
		t.Fatal(err)
	}
	if err := admin.StopCapture(ctx, id); err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for ; ; n++ {
		data, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, r.LinkType(), gopacket.Lazy)
		if udp, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); !ok || uint16(udp.DstPort) != d.Config().Adapters[0].UDPPort ||
			len(data) > 128 {
			t.Fatalf("packet %d: %v", n, p)
		}
	}
	s, err := r.Interface(0)
	if err != nil {
		t.Fatal(err)
	}
	// 64 KiB at path MTU 4096 are 16 packets, written and read back
	if n < 32 || s.Statistics.PacketsReceived != n || s.Statistics.PacketsDropped != 0 {
		t.Errorf("%d packets, statistics %+v", n, s.Statistics)
	}
	if err := admin.StopCapture(ctx, id); err == nil {
		t.Error("a capture was stopped twice")
	}
}

// TestCaptureRefusals: a request that cannot be met is refused with the field and what it allows, and a capture whose
// reader goes away ends.
func TestCaptureRefusals(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	admin := NewAdmin(cfg.Socket)
	for _, q := range []CaptureRequest{
		{Adapter: "middle"}, {Adapter: "left", Snap: -1}, {Adapter: "left", Ring: 5}, {Adapter: "left", Ring: captures.MaxRing + 1},
	} {
		if _, _, err := admin.StartCapture(t.Context(), q); err == nil {
			t.Errorf("%+v was accepted", q)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := admin.StartCapture(ctx, CaptureRequest{Adapter: "left"}); err != nil {
		t.Fatal(err)
	}
	cancel()
	await.Eventually(t, "the capture without a reader ends", func() bool {
		return len(d.Captures()) == 0
	})
}

// TestCaptureToFile: the driver writes a capture to a file, and completes the file when the driver ends.
func TestCaptureToFile(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	admin := NewAdmin(cfg.Socket)
	dir := t.TempDir()
	file := filepath.Join(dir, "x.pcapng")
	for path, want := range map[string]string{"x.pcapng": "an absolute path", dir: "a file",
		filepath.Join(dir, "none", "x"): "no such file"} {
		if _, err := admin.CaptureToFile(t.Context(), CaptureRequest{Adapter: "left"}, path); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	c, err := admin.CaptureToFile(t.Context(), CaptureRequest{Adapter: "left"}, file)
	if err != nil || !c.Running || c.File != file {
		t.Fatalf("the capture is %+v (%v), want it running to its file", c, err)
	}
	if _, err := admin.CaptureToFile(t.Context(), CaptureRequest{Adapter: "right"}, file); err == nil {
		t.Error("two captures write one file")
	}
	if list, err := admin.Captures(t.Context()); err != nil || len(list) != 1 || list[0].ID != c.ID {
		t.Errorf("the captures are %+v (%v), want the one that runs", list, err)
	}
	stop(t, d)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last packet: error %v, want the end of the file", err)
	}
	if s, err := r.Interface(0); err != nil || s.Statistics.LastUpdate.IsZero() {
		t.Errorf("the file has no statistics: %v", err)
	}
}
