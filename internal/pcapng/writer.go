// Package pcapng writes captures in the format that Wireshark reads (the IETF's pcapng draft), including
// counts of missed packets, and splits such a stream into files.
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

// nanoseconds is the resolution of timestamps: ten to the minus nine.
const nanoseconds = 9

// The interfaces of a section.
const (
	interfaceIP = iota
	interfaceFrames
	interfaceIB
	interfaces
)

// linkTypeInfiniBand is LINKTYPE_INFINIBAND: packets that begin with the LRH.
const linkTypeInfiniBand layers.LinkType = 247

// Writer writes the packets of one adapter as a pcapng section with three interfaces: one for packets that
// begin with an IP header (links that are sockets), one for Ethernet frames, one for InfiniBand packets.
type Writer struct {
	ng     *pcapgo.NgWriter
	start  time.Time
	counts [interfaces]uint64 // packets written, by interface
	missed [interfaces]uint64
}

// NewWriter begins a section for the adapter of that name. snap is the maximum length kept of a packet.
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
	for _, i := range []pcapgo.NgInterface{about(adapter+" (frames)", layers.LinkTypeEthernet),
		about(adapter+" (InfiniBand)", linkTypeInfiniBand)} {
		if _, err := ng.AddInterface(i); err != nil { // they are numbered in this order
			return nil, err
		}
	}
	return &Writer{ng: ng, start: start}, nil
}

// Packet adds a packet, with a drop count of those missed before it and, unless it is empty, a comment (opt_comment).
func (w *Writer) Packet(p *capture.Packet, comment string) error {
	id := interfaceIP
	switch {
	case p.InfiniBand:
		id = interfaceIB
	case p.Ethernet:
		id = interfaceFrames
	}
	w.counts[id]++
	w.missed[id] += p.Missed
	flags := pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	if p.Outbound {
		flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	options := pcapgo.NgPacketOptions{Flags: &flags}
	if comment != "" {
		options.Comments = []string{comment}
	}
	if p.Missed != 0 {
		options.DropCount = &p.Missed
	}
	info := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length, InterfaceIndex: id}
	return w.ng.WritePacketWithOptions(info, p.Data, options)
}

// Finish writes the statistics of the capture: how many packets were taken, and how many were missed in
// total, including those after the last packet.
func (w *Writer) Finish(missed uint64, end time.Time) error {
	late := missed - min(missed, w.missed[interfaceIP]+w.missed[interfaceFrames]+w.missed[interfaceIB])
	for i := range interfaces {
		dropped := w.missed[i]
		if w.counts[i] > 0 || i == interfaceIP && w.counts[interfaceFrames]+w.counts[interfaceIB] == 0 {
			dropped, late = dropped+late, 0
		}
		// What arrived at the interface is what was written plus what was missed.
		stats := pcapgo.NgInterfaceStatistics{
			LastUpdate: end, StartTime: w.start, EndTime: end,
			PacketsReceived: w.counts[i] + dropped, PacketsDropped: dropped,
		}
		if err := w.ng.WriteInterfaceStats(i, stats); err != nil {
			return err
		}
	}
	return w.ng.Flush()
}

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.ng.Flush() }
