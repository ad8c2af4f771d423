package ethernet

import "github.com/softvpi/softvpi/internal/pause"

// Counters are those of a port.
type Counters struct {
	Priority [Priorities]PriorityCounters
	// Global are the pauses of the whole link.
	Global PauseCounters
	// Ignored are pauses received of a kind, or for a priority, that the port does not obey.
	Ignored uint64
	// Flooded are frames received that went to every port of their VLAN.
	Flooded uint64
	// Dropped are frames received that went nowhere, by cause.
	Dropped Drops
	// NotLearned are frames received from new sources of which there were too many.
	NotLearned uint64
}

// Drops are frames that a port has received and that went nowhere, before they had a queue; TooLong also counts those not sent there.
type Drops struct {
	Malformed   uint64 // too short, or from a group
	UnknownVLAN uint64 // the port is not in their VLAN
	Reserved    uint64 // to an address that no bridge forwards (IEEE 802.1Q, 8.6.3), or a MAC control frame that is no pause
	Filtered    uint64 // their destination is at the port
	TooLong     uint64 // longer than the port takes (PortConfig.Limit), or, of frames from others, than it sends
	HopLimit    uint64 // routed too often
	NoRoute     uint64 // to the switch's MAC, and no route leads on; at a routed port also to any other
	Down        uint64 // the port is down
	Inactive    uint64 // the port does not collect (Port.SetMember)
	Lost        uint64 // the link has damaged them (Fabric.SetLoss), also on the way to what is in no fabric
}

// PriorityCounters are those of a priority at a port.
type PriorityCounters struct {
	InFrames, InBytes   uint64 // received, with the priority that they were given
	OutFrames, OutBytes uint64 // sent
	Marked              uint64 // sent with a mark that was made here
	// QueueDrops were not queued here: more waited than the threshold of the queue, or the port is down. BufferDrops were received
	// here, and the shared buffer was full. HeadroomDrops were received here at a lossless priority, and its headroom was full.
	QueueDrops, BufferDrops, HeadroomDrops uint64
	PeakQueue                              int // bytes that waited here at most
	PeakHeadroom                           int // bytes received here that were in the headroom at most
	Storms                                 uint64
	Pause                                  PauseCounters
}

// PauseCounters are pauses of a priority, or of a link, as a network card counts them.
type PauseCounters = pause.Counts

// Usage is what is used of a switch's buffer, in bytes.
type Usage struct {
	Size, Used, Peak int // of what the ports share
	Headroom         int // what is used of all headroom
}

// Events returns how many packets the port has marked and how many pauses it has sent, of all priorities.
func (p *Port) Events() (marks, pauses uint64) {
	for i := range p.classes {
		marks += p.classes[i].events.marked
	}
	return marks, p.flow.Sent()
}

// Sum returns how many there are, but for those that the link has damaged.
func (d *Drops) Sum() uint64 {
	return d.Malformed + d.UnknownVLAN + d.Reserved + d.Filtered + d.TooLong + d.HopLimit + d.NoRoute + d.Down + d.Inactive
}
