// Package state is what a fabric that runs tells of its ports, as JSON: to commands, the management interface and pages.
package state

import "time"

// Port is what a port of a switch, or the end of a host's link, is like now, and what it has counted since the fabric began. Of an
// InfiniBand port what has no meaning there is zero.
type Port struct {
	Node string `json:"node"`
	Port int    `json:"port"` // from 1
	Peer string `json:"peer"` // the other end, as leaf0[1]; empty: none
	Host bool   `json:"host,omitempty"`
	// InfiniBand says that the node is one of InfiniBand, of which State is the port's state and Width its width and speed.
	InfiniBand bool   `json:"infiniband,omitempty"`
	State      string `json:"state,omitempty"`
	Width      string `json:"width,omitempty"`
	// Program is whose adapter is plugged in at a host; empty: nobody's.
	Program string `json:"program,omitempty"`
	Up      bool   `json:"up"`
	// Rate is in bits per second; 0: it is not kept.
	Rate     uint64 `json:"rate,omitempty"`
	Lossless []int  `json:"pfc,omitempty"`
	// MTU is the longest IP packet that the port takes and sends; 0: as long as adapters send.
	MTU int `json:"mtu,omitempty"`
	// FlowControl says which pauses the port obeys and sends, for people; empty: none.
	FlowControl string `json:"flow_control,omitempty"`
	// Settings are how priorities are set, those alike together, for people.
	Settings []string `json:"settings,omitempty"`
	// Neighbour is who is at the other end by LLDP, and DCBX how that stands, for people; empty: nobody is heard, and it is not spoken.
	Neighbour string `json:"neighbour,omitempty"`
	DCBX      string `json:"dcbx,omitempty"`
	// LACP is how the port of a bundle stands with its partner, for people; empty: LACP is not spoken there.
	LACP  string `json:"lacp,omitempty"`
	PVID  uint16 `json:"pvid,omitempty"`
	Trunk string `json:"trunk,omitempty"`
	// Loss is the share of frames that are lost which leave the port, Storming are the priorities that it pauses for no reason,
	// Take is how fast a host takes what arrives, in bits per second; 0: at once.
	Loss     float64 `json:"loss,omitempty"`
	Storming []int   `json:"storm,omitempty"`
	Take     uint64  `json:"take,omitempty"`
	// Paused are the priorities that the other end has paused, Pausing those of the other end that this one has.
	Paused  []int `json:"paused,omitempty"`
	Pausing []int `json:"pausing,omitempty"`

	InFrames  uint64 `json:"in_frames"`
	InBytes   uint64 `json:"in_bytes"`
	OutFrames uint64 `json:"out_frames"`
	OutBytes  uint64 `json:"out_bytes"`
	Marked    uint64 `json:"marked"`
	Flooded   uint64 `json:"flooded"`
	// Queued is how many bytes wait to leave by the port, Peak how many did at most at one priority.
	Queued int `json:"queued"`
	Peak   int `json:"peak"`
	// Drops are frames that found no room: at queues that leave by the port, in the buffer and in headroom when they came in there.
	QueueDrops    uint64 `json:"queue_drops"`
	BufferDrops   uint64 `json:"buffer_drops"`
	HeadroomDrops uint64 `json:"headroom_drops"`
	// TooLong were longer than the MTU of the port where they came, or here where they would leave.
	TooLong uint64 `json:"too_long"`
	// Lost frames were damaged on the link to the port, Refused were received and went nowhere for other reasons.
	Lost    uint64 `json:"lost"`
	Refused uint64 `json:"refused"`
	// Pauses of all priorities and of the link; times in nanoseconds.
	PausesSent     uint64        `json:"pauses_sent"`
	PausesReceived uint64        `json:"pauses_received"`
	PausedTime     time.Duration `json:"paused_time"`
	PausingTime    time.Duration `json:"pausing_time"`
	Ignored        uint64        `json:"pauses_ignored"`
	Storms         uint64        `json:"storms"`
	// Errors are those of an InfiniBand port, Wait for how long it had something to send and no credits, in nanoseconds.
	Errors uint64        `json:"errors"`
	Wait   time.Duration `json:"wait"`

	Priorities []Priority `json:"priorities,omitempty"`
}

// Priority is what a port has counted at a priority at which it has seen frames or pauses.
type Priority struct {
	Priority  int    `json:"priority"`
	InFrames  uint64 `json:"in_frames"`
	InBytes   uint64 `json:"in_bytes"`
	OutFrames uint64 `json:"out_frames"`
	OutBytes  uint64 `json:"out_bytes"`
	Queued    int    `json:"queued"`
	Peak      int    `json:"peak"`
	Marked    uint64 `json:"marked"`
	Drops     uint64 `json:"drops"`
	Sent      uint64 `json:"pauses_sent"`
	Received  uint64 `json:"pauses_received"`
}

// Part is a part of the state of a fabric: of its ports from a number on.
type Part struct {
	// Next is the number of the port after the last; 0: there is none.
	Next  int   `json:"next,omitempty"`
	Timed bool  `json:"timing"`
	Now   int64 `json:"now"` // ns since the fabric began
	// Deadlock names queues of the Ethernet that wait for each other now, and Incidents are the last ones; in the first part alone.
	Deadlock  string     `json:"deadlock,omitempty"`
	Incidents []Incident `json:"incidents,omitempty"`
	Ports     []Port     `json:"ports"`
}

// Incident is a pause that did not end for long (storm), or queues that wait for each other (deadlock); over: it has ended.
type Incident struct {
	Number uint64 `json:"number"` // from 1 on
	At     int64  `json:"at"`     // ns since the fabric began
	Kind   string `json:"kind"`
	Over   bool   `json:"over,omitempty"`
	Text   string `json:"text"`
}

// String returns the incident as people read it.
func (i Incident) String() string {
	if i.Kind == "deadlock" && !i.Over {
		return "deadlock: these wait for each other: " + i.Text
	}
	return i.Kind + ": " + i.Text
}
