package api

import (
	"fmt"
	"io"
	"strings"
)

// VMQStatus is what an adapter offers of virtual machine queues (WinOF 5.50, 4.5.1 and 4.6.6.2).
type VMQStatus struct {
	Enabled       bool   `json:"enabled"` // *VMQ
	Offers        string `json:"offers"`  // VMQ or RSS, by *VMQ and *RssOrVmqPreference
	VLANFiltering bool   `json:"vlan_filtering"`
	// Queues, MACs and VLANs are how many there are, and Used of them virtual ports have.
	Queues     int `json:"queues"`
	UsedQueues int `json:"used_queues"`
	MACs       int `json:"macs"`
	UsedMACs   int `json:"used_macs"`
	VLANs      int `json:"vlans"`
	UsedVLANs  int `json:"used_vlans"`
	// Default is the default queue, with what it has counted for all who share it: the virtual ports without a queue of their own.
	Default QueueCounters `json:"default_queue"`
	Sharing []string      `json:"default_queue_functions"`
}

// QueueCounters are those of a receive queue, since it was given to its port.
type QueueCounters struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Dropped uint64 `json:"dropped"` // for want of a buffer
	Split   uint64 `json:"split"`   // whose headers have buffers of their own (*VMQLookaheadSplit)
}

// QueueStatus is the receive queue of the physical function by which a virtual port gets its frames.
type QueueStatus struct {
	Number         int           `json:"number"`        // 0: the default queue
	Why            string        `json:"why,omitempty"` // it has none of its own
	Weight         int           `json:"weight"`        // VmqWeight
	LookaheadSplit bool          `json:"lookahead_split"`
	Filters        []QueueFilter `json:"filters"` // of its own queue
	QueueCounters                // of its own queue
}

// QueueFilter is which frames are a queue's.
type QueueFilter struct {
	MAC     string `json:"mac"`
	VLAN    uint16 `json:"vlan"` // 0: without a tag
	AnyVLAN bool   `json:"any_vlan,omitempty"`
}

// Text says which queue it is.
func (q *QueueStatus) Text() string {
	if q.Number == 0 {
		return "default queue (" + q.Why + ")"
	}
	return fmt.Sprint("queue ", q.Number)
}

// writeText prints what an adapter offers, if it has virtual ports or offers VMQ.
func (v *VMQStatus) writeText(w io.Writer) {
	if v == nil || v.UsedQueues == 0 && len(v.Sharing) == 0 && v.Offers != "VMQ" {
		return
	}
	fmt.Fprintf(w, "  VMQ: offers %s, %d of %d queues in use", v.Offers, v.UsedQueues, v.Queues)
	if len(v.Sharing) > 0 {
		fmt.Fprintf(w, "; default queue: %s (%d packets, %d dropped)", clean(strings.Join(v.Sharing, ", ")), v.Default.Packets, v.Default.Dropped)
	}
	fmt.Fprintln(w)
}
