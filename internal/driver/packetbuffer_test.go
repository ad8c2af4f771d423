package driver

import (
	"bytes"
	"io"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/api"
)

// TestPacketBufferEndsWithTheDriver: the packet buffer needs its key and a restart, an empty one is a file without
// packets, and it ends with the driver.
func TestPacketBufferEndsWithTheDriver(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	name := cfg.Adapters[0].Name
	if _, err := d.StartPacketBuffer(name, api.PacketBufferRequest{}); err == nil {
		t.Error("started without its key")
	}
	one := "1"
	if _, err := d.Set(name, rssMonitoring, &one); err != nil {
		t.Fatal(err)
	}
	if _, err := d.StartPacketBuffer(name, api.PacketBufferRequest{}); err == nil {
		t.Error("started before the restart")
	}
	if err := d.RestartAdapter(name); err != nil {
		t.Fatal(err)
	}
	if b, err := d.StartPacketBuffer(name, api.PacketBufferRequest{Packets: 3}); err != nil ||
		b != (api.PacketBuffer{Running: true, Packets: 3, Bytes: 128}) {
		t.Fatalf("the buffer is %+v (%v), want it running with 3 packets of 128 bytes", b, err)
	}
	pcap, err := NewAdmin(cfg.Socket).CollectPackets(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(bytes.NewReader(pcap))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.ReadPacketData(); err != io.EOF {
		t.Errorf("reading an empty buffer: error %v, want the end of the file", err)
	}
}
