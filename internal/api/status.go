package api

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Status is the state of a driver, which `softvpi status --json` prints.
type Status struct {
	Version  string          `json:"version"`
	PID      int             `json:"pid"`
	Started  time.Time       `json:"started"`
	Socket   string          `json:"socket"`
	Attach   string          `json:"attach"`             // empty: programs can attach; otherwise why not
	Held     *HeldStatus     `json:"held,omitempty"`     // what programs make the driver hold; absent: none can attach
	Volatile string          `json:"volatile,omitempty"` // why nothing is kept on disk; empty: everything is
	Died     *Death          `json:"died,omitempty"`     // how the driver before this one ended; absent: it stopped
	Panics   uint64          `json:"panics,omitempty"`   // requests to the management interface that ended in a panic
	Adapters []AdapterStatus `json:"adapters"`
	Switches []SwitchStatus  `json:"switches,omitempty"`
	Teams    []TeamStatus    `json:"teams,omitempty"`
	// VirtualSwitches are those over adapters, by name; Switches are wires between adapters.
	VirtualSwitches []VirtualSwitch `json:"vswitches,omitempty"`
	Programs        []ProgramStatus `json:"programs"`
}

// Death is how a driver died that did not stop.
type Death struct {
	Time   time.Time `json:"time"`   // when it wrote last
	Cause  string    `json:"cause"`  // the first line of its traceback, or that there is none
	Folder string    `json:"folder"` // what it left; empty: it could not be kept
}

// Adapter returns the adapter of that name; letter case matters only if names differ in nothing else.
// Otherwise the error is a *FieldError for the field that the name was given in.
func (s *Status) Adapter(field, name string) (*AdapterStatus, error) {
	var found *AdapterStatus
	var names []string
	for i := range s.Adapters {
		a := &s.Adapters[i]
		if a.Name == name {
			return a, nil
		}
		if strings.EqualFold(a.Name, name) {
			found = a
		}
		names = append(names, strconv.Quote(a.Name))
	}
	if found == nil {
		return nil, &FieldError{field, strconv.Quote(name), strings.Join(names, ", ")}
	}
	return found, nil
}

// AdapterStatus is an adapter with its port.
type AdapterStatus struct {
	Index       uint32            `json:"index"`
	Name        string            `json:"name"`
	Generation  string            `json:"generation"` // mlx5, mlx4
	Number      int               `json:"number"`     // the <nn> of its registry keys
	Addresses   []netip.Addr      `json:"addresses"`
	Enabled     bool              `json:"enabled"`
	Up          bool              `json:"up"`
	Speed       uint64            `json:"speed"`  // of an Ethernet port's link in bit/s; 0: it is down, or the speed is not known
	Duplex      string            `json:"duplex"` // full, half; empty: it is down, or InfiniBand
	RoCE        string            `json:"roce"`
	ActiveMTU   uint32            `json:"active_mtu"` // payload bytes of a packet
	LinkMTU     uint32            `json:"link_mtu"`   // bytes of an IP packet
	UDPPort     uint32            `json:"udp_port"`
	NoRDMA      bool              `json:"no_rdma"`     // programs have none: the registry key *NetworkDirect is 0
	GUID        uint64            `json:"guid,string"` // of the port; a string: above 2^53 browsers and jq lose bits of a number
	MAC         string            `json:"mac"`
	Pending     bool              `json:"pending"` // keys were changed that take effect at a restart
	Path        string            `json:"path"`
	Impairment  string            `json:"impairment"` // empty: none
	SourcePorts string            `json:"source_ports"`
	Frames      string            `json:"frames"` // whether short packets are sent as Ethernet frames, or why not
	Wire        string            `json:"wire"`   // what the port's packets travel on: UDP sockets, interface eth0, TAP tap0, ...
	GIDs        []GIDStatus       `json:"gids"`
	QPs         []QPStatus        `json:"qps"`
	Objects     map[string]int    `json:"objects"`
	Link        LinkStatus        `json:"link"`
	Retransmits uint64            `json:"retransmits"`
	Counters    map[string]uint64 `json:"counters"`

	// Configuration holds the mlxconfig parameters that were set when the adapter started.
	Configuration map[string]uint64 `json:"configuration"`

	// Firmware is what the device's flash held when the adapter started.
	Firmware FirmwareStatus `json:"firmware"`

	// Device is the adapter with the keys of the device that this adapter is a port of: the adapter of the
	// device's first port. Port is the number of this port, from 1, of Ports.
	Device string `json:"device"`
	Port   int    `json:"port"`
	Ports  int    `json:"ports"`
	// DeviceName, NodeGUID and DeviceNumber identify the device: the name by which tools show it, its GUID,
	// and the number of the keys of its first port, from which its location follows.
	DeviceName   string `json:"device_name"`
	NodeGUID     uint64 `json:"node_guid,string"`
	DeviceNumber int    `json:"device_number"`

	// Protocols are the link types that the port supports, depending on what it is connected to: ib, eth,
	// or both.
	Protocols []string `json:"protocols"`

	// InfiniBand describes an InfiniBand port; RoCE, UDPPort and Frames are then meaningless.
	InfiniBand *InfiniBandStatus `json:"infiniband,omitempty"`

	// IPoIB lists the port's IPoIB interfaces, its own one first.
	IPoIB []IPoIBStatus `json:"ipoib,omitempty"`

	// Ethernet is the adapter's Ethernet function; nil: it has none.
	Ethernet *EthernetStatus `json:"ethernet,omitempty"`

	// QoS is what an Ethernet port of the generation that has such keys is to do about priorities; nil for others.
	QoS *QoSStatus `json:"qos,omitempty"`

	// FlowControl is which pauses an Ethernet port obeys and sends; nil for others.
	FlowControl *FlowControlStatus `json:"flow_control,omitempty"`

	// SRIOV is what the device's configuration grants the port; nil: it is no Ethernet port. Functions are the virtual functions at it.
	SRIOV     *SRIOVStatus     `json:"sriov,omitempty"`
	Functions []FunctionStatus `json:"functions,omitempty"`
	// VMQ is what an Ethernet port offers of virtual machine queues; nil: it has no room for virtual ports.
	VMQ *VMQStatus `json:"vmq,omitempty"`

	// VLANs are the VLAN interfaces at the port.
	VLANs []VLANStatus `json:"vlans,omitempty"`

	// Healing is what self-healing has seen and done; nil: it does not run yet.
	Healing *HealingStatus `json:"healing,omitempty"`
}

// EthernetStatus is the Ethernet function of an adapter, beside its RDMA function.
type EthernetStatus struct {
	Host   string       `json:"host"` // who uses it: TAP nic0, datagram socket PATH, ...
	Up     bool         `json:"up"`
	Asleep bool         `json:"asleep"` // until a frame wakes its host
	MAC    string       `json:"mac"`
	MTU    int          `json:"mtu"`    // bytes of an IP packet
	Queues int          `json:"queues"` // receive queues
	Rings  []RingStatus `json:"rings"`  // of these queues, in order
	// Loop are the processors on which the thread runs that serves the queues; none: all on which the driver may.
	Loop     []int             `json:"loop_processors,omitempty"`
	Counters map[string]uint64 `json:"counters"` // by the short names of the sets network_interface and ethernet
	Filter   FilterStatus      `json:"filter"`
	// VXLANOff says why VXLAN is not handled though the keys ask for it; none: it is, or they do not.
	VXLANOff string `json:"vxlan_off,omitempty"`
}

// FilterStatus is which frames an Ethernet function passes to its host.
type FilterStatus struct {
	PacketFilter uint32   `json:"packet_filter"` // as NDIS numbers it; 0 while the adapter is disabled
	Directed     bool     `json:"directed"`
	Multicast    bool     `json:"multicast"` // to groups on the list
	AllMulticast bool     `json:"all_multicast"`
	Broadcast    bool     `json:"broadcast"`
	Promiscuous  bool     `json:"promiscuous"`
	Groups       []string `json:"groups"`        // the list
	MostGroups   int      `json:"most_groups"`   // MaxNumOfMCList
	VLANs        []uint16 `json:"vlans"`         // whose frames pass
	AnyVLAN      bool     `json:"any_vlan"`      // PromiscuousVlan
	Untagged     bool     `json:"untagged"`      // frames in no VLAN pass
	Flows        int      `json:"flows"`         // of programs' raw packet queue pairs, which come first
	LongestFrame int      `json:"longest_frame"` // bytes without FCS and tags
}

// RingStatus is a receive queue of an Ethernet function, with the send queues of the same flows.
type RingStatus struct {
	Processor       int    `json:"processor"` // that RSS has chosen for it
	ReceivedPackets uint64 `json:"received_packets"`
	ReceivedBytes   uint64 `json:"received_bytes"`
	Dropped         uint64 `json:"dropped_packets"` // received ones for which there was no room
	SentPackets     uint64 `json:"sent_packets"`
	SentBytes       uint64 `json:"sent_bytes"`
}

// IPoIBStatus is an IPoIB interface.
type IPoIBStatus struct {
	Connection string            `json:"connection"`          // the adapter's name, or that of a virtual port
	Interface  string            `json:"interface,omitempty"` // network interface of the system; empty: none
	IName      string            `json:"iname,omitempty"`     // of a virtual port
	State      string            `json:"state"`               // up, or why it is disconnected
	Connected  bool              `json:"connected"`           // packets flow
	MTU        int               `json:"mtu"`                 // bytes of an IP packet
	PKey       uint16            `json:"pkey"`                // 0: none yet
	Address    string            `json:"address"`             // link-layer address, 20 bytes
	MAC        string            `json:"mac"`                 // derived from the port's GUID by GUIDMask
	Broadcast  string            `json:"broadcast,omitempty"` // MGID of the broadcast group
	MLID       uint16            `json:"mlid"`                // of the broadcast group; 0: not joined
	Local      int               `json:"local_endpoints"`     // its own addresses and those behind it
	Multicast  int               `json:"multicast_endpoints"` // groups
	Remote     int               `json:"remote_endpoints"`    // neighbours
	Counters   map[string]uint64 `json:"counters"`            // by the short names of the sets network_interface and ipoib
}

// InfiniBandStatus is a port of an InfiniBand fabric.
type InfiniBandStatus struct {
	State    string   `json:"state"`    // Down, Initialize, Armed, Active
	Physical string   `json:"physical"` // of the link
	LID      uint16   `json:"lid"`      // 0: the subnet manager has not assigned one yet
	LMC      uint8    `json:"lmc"`
	SMLID    uint16   `json:"sm_lid"`
	SMSL     uint8    `json:"sm_sl"`
	Prefix   uint64   `json:"prefix,string"`
	PortGUID uint64   `json:"port_guid,string"` // strings, like the adapter's guid
	NodeGUID uint64   `json:"node_guid,string"`
	Rate     string   `json:"rate"` // such as 4xEDR; empty: the link is down
	Mbps     uint64   `json:"mbps"` // the usual nominal value
	MTU      int      `json:"mtu"`  // payload bytes of a packet
	MaxMTU   int      `json:"max_mtu"`
	PKeys    []uint16 `json:"pkeys"`
}

// GIDStatus is a row of the GID table.
type GIDStatus struct {
	Index uint32     `json:"index"`
	RoCE  string     `json:"roce"`
	GID   netip.Addr `json:"gid"`
}

// QPStatus is a queue pair with its owner.
type QPStatus struct {
	Number       uint32     `json:"number"`
	Type         string     `json:"type"`
	State        string     `json:"state"`
	Owner        string     `json:"owner"`
	PID          int        `json:"pid"`
	Peer         netip.Addr `json:"peer"`
	PeerLID      uint16     `json:"peer_lid,omitempty"` // on InfiniBand
	RemoteNumber uint32     `json:"remote_number"`
	Path         string     `json:"path"`
	MTU          uint32     `json:"mtu"`
	SourcePort   uint16     `json:"source_port"`
	SendPosted   uint32     `json:"send_posted"`
	RecvPosted   uint32     `json:"recv_posted"`
	Returned     string     `json:"returned,omitempty"` // why the program last left a request of the direct path to the driver
	// Rate is how congestion limits what it sends; absent: it does not.
	Rate *RateStatus `json:"rate,omitempty"`
	// RateLimit is the rate that its program has asked for (ibv_modify_qp_rate_limit), in Mbit/s; 0: none.
	RateLimit float64 `json:"rate_limit,omitempty"`
}

// LeastRate returns the lower of the rates that limit a queue pair; no limit is the highest.
func (q *QPStatus) LeastRate() float64 {
	mbps := math.Inf(1)
	if q.Rate != nil {
		mbps = q.Rate.Current
	}
	if q.RateLimit > 0 {
		mbps = min(mbps, q.RateLimit)
	}
	return mbps
}

// RateText returns the rate that limits a queue pair with a unit, and "set" if it is its program's; "-" if there is none.
func (q QPStatus) RateText() string {
	switch r := q.LeastRate(); {
	case math.IsInf(r, 1):
		return "-"
	case r == q.RateLimit:
		return rateText(r) + " set"
	default:
		return rateText(r)
	}
}

// RateStatus is the reaction point of a queue pair (WinOF-2 Ethernet b, RoCEv2 Congestion Management).
type RateStatus struct {
	Current float64 `json:"current" doc:"Rate at which it sends, in Mbit/s."`
	Target  float64 `json:"target" doc:"Rate to which that grows, in Mbit/s."`
	Alpha   float64 `json:"alpha" doc:"How congested its way is, from 0 to 1."`
}

func rateText(mbps float64) string {
	if mbps >= 1000 {
		return fmt.Sprintf("%.2f Gb/s", mbps/1000)
	}
	return fmt.Sprintf("%.1f Mb/s", mbps)
}

// LinkStatus counts the link's traffic since it was opened.
type LinkStatus struct {
	SentPackets     uint64 `json:"sent_packets"`
	SentBytes       uint64 `json:"sent_bytes"`
	SentBursts      uint64 `json:"sent_bursts"`
	ReceivedPackets uint64 `json:"received_packets"`
	ReceivedBytes   uint64 `json:"received_bytes"`
	SendBlocked     uint64 `json:"send_blocked"`
	SendErrors      uint64 `json:"send_errors"`
	ReceiveDrops    uint64 `json:"receive_drops"`
	ReceiveBuffer   int    `json:"receive_buffer"`
	ImpairedLost    uint64 `json:"impaired_lost"`
	SentFrames      uint64 `json:"sent_frames"`
	ReceivedFrames  uint64 `json:"received_frames"`
}

// ProgramStatus is a program that uses the adapters.
type ProgramStatus struct {
	Name       string         `json:"name"`
	PID        int            `json:"pid"`
	UID        int            `json:"uid"`
	Function   string         `json:"function,omitempty"` // the virtual function that it has; empty: it sees all adapters
	MemoryPath string         `json:"memory_path"`        // how its memory is accessed: mapped, process_vm, copier
	ArenaBytes uint64         `json:"arena_bytes"`
	Objects    map[string]int `json:"objects"`

	// MemoryBytes and Descriptors are what the program makes the driver hold; Refused is how often it wanted
	// more than the limits allow.
	MemoryBytes uint64 `json:"memory_bytes"`
	Descriptors uint64 `json:"descriptors"`
	Refused     uint64 `json:"refused"`
}

// HeldStatus is what attached programs make the driver hold, with its limits.
type HeldStatus struct {
	Memory      HeldResource `json:"memory"` // bytes
	Descriptors HeldResource `json:"descriptors"`
	// Containers are those that have sockets of their own.
	Containers []ContainerStatus `json:"containers,omitempty"`
}

// ContainerStatus is a socket for a container, and what the programs there make the driver hold.
type ContainerStatus struct {
	Number           int    `json:"number"` // from 0
	Socket           string `json:"socket"`
	Memory           uint64 `json:"memory"`       // bytes
	MemoryLimit      uint64 `json:"memory_limit"` // 0: none but those of all programs, as for descriptors
	Descriptors      uint64 `json:"descriptors"`
	DescriptorsLimit uint64 `json:"descriptors_limit"`
	Refused          uint64 `json:"refused"` // how often programs wanted more
}

// HeldResource is how much of a resource is held, and how much may be.
type HeldResource struct {
	Used       uint64 `json:"used"`
	Total      uint64 `json:"total"`       // for all programs
	PerUser    uint64 `json:"per_user"`    // for the programs of one user
	PerProgram uint64 `json:"per_program"` // for one program
	Refused    uint64 `json:"refused"`     // how often programs wanted more
}

// PeerName returns the peer as lists show it: its address, on InfiniBand its LID; empty if there is none.
func (q *QPStatus) PeerName() string {
	switch {
	case q.PeerLID != 0:
		return fmt.Sprintf("LID %d", q.PeerLID)
	case q.Peer.IsValid():
		return q.Peer.String()
	}
	return ""
}
