package api

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// SwitchStatus is a virtual Ethernet switch of the driver.
type SwitchStatus struct {
	Name  string             `json:"name"`
	Ports []SwitchPortStatus `json:"ports"`
	Table []SwitchEntry      `json:"table"` // the sources that it knows, by VLAN and MAC
}

// SwitchPortStatus is a port of a switch. Frames larger than the wire's count once.
type SwitchPortStatus struct {
	Number      int    `json:"number"` // from 1
	Adapter     string `json:"adapter"`
	PVID        uint16 `json:"pvid"`             // VLAN of frames without a tag; 0: none
	Tagged      string `json:"tagged,omitempty"` // VLANs of frames with a tag: 10+20-29, or all; empty: none
	InFrames    uint64 `json:"in_frames"`
	InBytes     uint64 `json:"in_bytes"`
	OutFrames   uint64 `json:"out_frames"`
	OutBytes    uint64 `json:"out_bytes"`
	Flooded     uint64 `json:"flooded"`      // came in, and left at every port of the VLAN
	UnknownVLAN uint64 `json:"unknown_vlan"` // came in, and were dropped, as the next three
	Malformed   uint64 `json:"malformed"`
	Reserved    uint64 `json:"reserved"`    // to an address that no bridge forwards
	Filtered    uint64 `json:"filtered"`    // to a destination at the same port
	NotLearned  uint64 `json:"not_learned"` // came in from new sources, of which there were too many
	QueueDrops  uint64 `json:"queue_drops"` // did not leave: the port's queue was full
	TooLong     uint64 `json:"too_long"`    // did not leave: longer than the MTU
	// PausesSent and PausesReceived are pauses of the whole link, and of priorities.
	PausesSent     uint64 `json:"pauses_sent"`
	PausesReceived uint64 `json:"pauses_received"`
}

// SwitchEntry is a source that a switch knows.
type SwitchEntry struct {
	VLAN       uint16 `json:"vlan"`
	MAC        string `json:"mac"`
	Adapter    string `json:"adapter"`     // at whose port it was heard last
	AgeSeconds int64  `json:"age_seconds"` // since then
}

// maxListedEntries limits how many sources of a switch the text shows.
const maxListedEntries = 64

// writeText prints a switch.
func (s *SwitchStatus) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nSwitch %s: ports: %d, known sources: %d\n", clean(s.Name), len(s.Ports), len(s.Table))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  port\tadapter\tuntagged\ttagged\tin\tout\tflooded\tdropped in\tdropped out\tunknown VLAN")
	for _, p := range s.Ports {
		untagged := "none"
		if p.PVID != 0 {
			untagged = fmt.Sprint(p.PVID)
		}
		fmt.Fprintf(t, "  %d\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", p.Number, clean(p.Adapter), untagged, or(p.Tagged, "none"), p.InFrames,
			p.OutFrames, p.Flooded, p.UnknownVLAN+p.Malformed+p.Reserved+p.Filtered, p.QueueDrops+p.TooLong, p.UnknownVLAN)
	}
	if len(s.Table) > 0 {
		fmt.Fprintln(t, "  VLAN\tMAC\tadapter\tage")
	}
	for i, e := range s.Table {
		if i == maxListedEntries {
			fmt.Fprintf(t, "  ... and %d more (all of them with --json)\n", len(s.Table)-i)
			break
		}
		fmt.Fprintf(t, "  %d\t%s\t%s\t%d s\n", e.VLAN, e.MAC, clean(e.Adapter), e.AgeSeconds)
	}
	t.Flush()
}
