// Package pcapng writes captures in the format that Wireshark reads (the IETF's pcapng draft), with the
// packets that a capture missed counted in it, and cuts such a stream into files.
package pcapng

import (
	"io"
	"runtime"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/link/capture"
)

// nanoseconds is the resolution of time stamps: ten to the minus nine.
const nanoseconds = 9

// Writer writes the packets of one adapter as a pcapng section with two interfaces: one for packets that
// begin with an IP header (links that are sockets) and one for Ethernet frames.
type Writer struct {
	ng     *pcapgo.NgWriter
	ip     int
	frames int
	start  time.Time
	counts [2]uint64 // packets written, by interface
	missed [2]uint64
}

// NewWriter begins a section for the adapter of that name. snap is the most that is kept of a packet.
func NewWriter(w io.Writer, adapter string, snap int, start time.Time) (*Writer, error) {
	about := func(name string, link layers.LinkType) pcapgo.NgInterface {
		return pcapgo.NgInterface{
			Name: name, LinkType: link, SnapLength: uint32(snap), TimestampResolution: nanoseconds, OS: runtime.GOOS,
		}
	}
	options := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "SoftVPI",
	}}
	ng, err := pcapgo.NewNgWriterInterface(w, about(adapter, layers.LinkTypeRaw), options)
	if err != nil {
		return nil, err
	}
	frames, err := ng.AddInterface(about(adapter+" (frames)", layers.LinkTypeEthernet))
	if err != nil {
		return nil, err
	}
	return &Writer{ng: ng, frames: frames, start: start}, nil
}

// Packet adds a packet. Those that were missed before it stand in its drop count.
func (w *Writer) Packet(p *capture.Packet) error {
	id, at := w.ip, 0
	if p.Ethernet {
		id, at = w.frames, 1
	}
	w.counts[at]++
	w.missed[at] += p.Missed
	flags := pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	if p.Outbound {
		flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	options := pcapgo.NgPacketOptions{Flags: &flags}
	if p.Missed != 0 {
		options.DropCount = &p.Missed
	}
	info := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length, InterfaceIndex: id}
	return w.ng.WritePacketWithOptions(info, p.Data, options)
}

// Finish writes the statistics of the capture: what was taken, and what was missed in all, also after the
// last packet.
func (w *Writer) Finish(missed uint64, end time.Time) error {
	late := missed - min(missed, w.missed[0]+w.missed[1])
	for i, id := range []int{w.ip, w.frames} {
		dropped := w.missed[i]
		if w.counts[i] > 0 || i == 0 && w.counts[1] == 0 {
			dropped, late = dropped+late, 0
		}
		// What arrived at the interface is what was written and what was missed.
		stats := pcapgo.NgInterfaceStatistics{
			LastUpdate: end, StartTime: w.start, EndTime: end,
			PacketsReceived: w.counts[i] + dropped, PacketsDropped: dropped,
		}
		if err := w.ng.WriteInterfaceStats(id, stats); err != nil {
			return err
		}
	}
	return w.ng.Flush()
}

// Flush hands on what is buffered.
func (w *Writer) Flush() error { return w.ng.Flush() }
