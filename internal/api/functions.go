package api

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// SRIOVStatus is what SR-IOV's configuration grants a port.
type SRIOVStatus struct {
	Support   string `json:"support"`         // as Get-NetAdapterSriov has it: Supported, NoVfBarSpace, Unknown
	Cause     string `json:"cause,omitempty"` // why there are none, or fewer than requested
	Granted   uint32 `json:"granted"`
	Requested uint32 `json:"requested"` // *NumVFs
	// EtherTypes are what virtual functions may send; 0x0000 stands for frames with a length.
	EtherTypes    []string `json:"ethertypes"`
	RedirectsDHCP bool     `json:"redirects_dhcp"` // of virtual functions to the physical one
}

// FunctionStatus is a virtual function.
type FunctionStatus struct {
	Name    string  `json:"name"`
	Adapter string  `json:"adapter"` // at whose port it is
	ByKeys  bool    `json:"by_keys"` // the device's configuration has it, and not a command
	MAC     string  `json:"mac"`
	GUID    uint64  `json:"guid,string"`     // of its port; a string: above 2^53 browsers and jq lose bits of a number
	Number  int     `json:"number"`          // at the port, from 0 on
	VLAN    uint16  `json:"vlan"`            // 0: none
	VLANs   string  `json:"vlans,omitempty"` // whose tags it may use itself
	VSID    uint32  `json:"vsid,omitempty"`  // its virtual subnet, 0: none
	Address string  `json:"address"`
	Link    string  `json:"link"`              // auto, up, down: what was decided
	Up      bool    `json:"up"`                // what it is
	Max     float64 `json:"max"`               // Mbit/s, 0: no limit
	Min     float64 `json:"min"`               // Mbit/s that it has before others have more, 0: none
	NoRDMA  bool    `json:"no_rdma,omitempty"` // its programs have none
	Trust   bool    `json:"trust"`
	Group   string  `json:"group,omitempty"` // whose members' programs may attach, beside the driver's user; a name or number
	TAP     string  `json:"tap,omitempty"`   // its network interface
	NetNS   string  `json:"netns,omitempty"` // in which that is opened
	Visible string  `json:"visible"`         // whose programs have it: all who may attach, or netns, those of the network namespace of its interface
	// Host is who uses its Ethernet function: tap:NAME, datagram:PATH or stream:PATH, with the path of the virtual machine's datagram
	// socket; HostState says whether a virtual machine has the other side: attended, waiting, or lost if the driver's socket was removed.
	Host      string `json:"host,omitempty"`
	HostPeer  string `json:"host_peer,omitempty"`
	HostState string `json:"host_state,omitempty"`
	// Rings are the queues that the network interface has, and QueuesRequested is how many were asked for; 0: as many as the keys say.
	Rings           []RingStatus `json:"rings,omitempty"`
	QueuesRequested int          `json:"queues_requested,omitempty"`
	VMQ             *QueueStatus `json:"vmq,omitempty"` // of a virtual port with a network interface
	Socket          string       `json:"socket,omitempty"`
	// ContainerSocket is the one that containers get, in a directory of its own; absent without sockets for containers.
	ContainerSocket string            `json:"container_socket,omitempty"`
	Programs        int               `json:"programs"`
	QPs             int               `json:"qps"`
	Counters        map[string]uint64 `json:"counters"`
	// Fabric is what it has of an InfiniBand port, and PKeysGiven what it is to have of its partitions: default, all, or P_Keys.
	Fabric     *FunctionFabric `json:"fabric,omitempty"`
	PKeysGiven string          `json:"pkeys,omitempty"`
	// IPoIB are its IPoIB interfaces, its own first.
	IPoIB []IPoIBStatus `json:"ipoib,omitempty"`
}

// FunctionFabric is what a virtual function has of an InfiniBand port.
type FunctionFabric struct {
	LID   uint16   `json:"lid"`             // its own, or the port's; 0: none yet
	Asked []string `json:"guids_asked"`     // for its rows of the port's GUIDInfo; auto: what the subnet manager chooses
	GUIDs []string `json:"guids,omitempty"` // that it has: its GIDs are the subnet's prefix with them
	Cause string   `json:"cause,omitempty"` // why it has not all of them
	GIDs  []string `json:"gids,omitempty"`
	PKeys []string `json:"p_keys,omitempty"`
	// Routing is how its packets find it, as SRIOV_IB_ROUTING_MODE has it: by GID, with the port's LID, or by LID; empty: it is not live.
	Routing string `json:"routing,omitempty"`
}

// FunctionRequest creates or changes a virtual function.
type FunctionRequest struct {
	Adapter  string   `json:"adapter,omitempty" doc:"Of a new one: the adapter at whose port it is to be."`
	Name     string   `json:"name,omitempty" doc:"Of a new one: letters, digits, and - _ . between them; at most 31."`
	Settings []string `json:"settings" doc:"Words: mac=02:00:00:00:00:01 address=192.0.2.9/24 vlan=0..4094 vlans=none|all|10+20-29 vsid=0|4096..16777214 link=auto|up|down max=Mbit/s min=Mbit/s queues=0..64 rdma=on|off trust=on|off group=NAME tap=NAME|none host=tap:NAME|datagram:PATH|stream:PATH|none hostpeer=PATH|none netns=NAME|PATH|none visible=all|netns; at an InfiniBand port guid=0x0200c90000000001|auto pkeys=default|all|0x8001+0x7fff."`
	// Anew makes it another function for its programs, whatever changes: not for requests from outside.
	Anew bool `json:"-"`
}

// Functions returns the virtual functions.
func (c *Client) Functions(ctx context.Context) (list []FunctionStatus, err error) {
	err = c.call(ctx, "GET", FunctionsURL, nil, nil, &list)
	return list, err
}

// CreateFunction creates a virtual function.
func (c *Client) CreateFunction(ctx context.Context, q FunctionRequest) (f FunctionStatus, err error) {
	err = c.call(ctx, "POST", FunctionsURL, nil, q, &f)
	return f, err
}

// SetFunction changes a virtual function.
func (c *Client) SetFunction(ctx context.Context, q FunctionRequest) error {
	at := FunctionsURL + "/" + url.PathEscape(q.Name)
	q.Name = ""
	return c.call(ctx, "PATCH", at, nil, q, nil)
}

// RemoveFunction removes a virtual function.
func (c *Client) RemoveFunction(ctx context.Context, name string) error {
	return c.call(ctx, "DELETE", FunctionsURL+"/"+url.PathEscape(name), nil, nil, nil)
}

// ResetFunction resets a virtual function.
func (c *Client) ResetFunction(ctx context.Context, name string) error {
	return c.call(ctx, "POST", FunctionsURL+"/"+url.PathEscape(name)+"/reset", nil, nil, nil)
}

// WriteText prints a virtual function as a line.
func (f *FunctionStatus) WriteText(w io.Writer) {
	state, queue := map[bool]string{true: "up", false: "down"}[f.Up], ""
	if f.VMQ != nil {
		queue = f.VMQ.Text()
	}
	if f.Link != "auto" {
		state += " (link=" + f.Link + ")"
	}
	identity, cause, lid := f.MAC, "", uint16(0)
	if f.Fabric != nil {
		identity, cause, lid = strings.Join(f.Fabric.Asked, "+"), f.Fabric.Cause, f.Fabric.LID
	}
	fmt.Fprintf(w, "  VF %s  %s  %s", f.Name, identity, f.Address)
	for _, x := range []struct {
		say  bool
		text string
	}{{f.VLAN != 0, fmt.Sprint("VLAN ", f.VLAN)}, {f.Fabric != nil && f.PKeysGiven != "default", "P_Keys " + f.PKeysGiven},
		{lid != 0, lidText(f.Fabric)}, {true, state}, {cause != "", cause}, {f.Max != 0, fmt.Sprintf("at most %g Mb/s", f.Max)},
		{f.Min != 0, fmt.Sprintf("at least %g Mb/s", f.Min)}, {f.NoRDMA, "no RDMA"}, {f.Trust, "trusted"},
		{f.Group != "", "group " + clean(f.Group)},
		{f.TAP != "", "tap " + clean(f.TAP)}, {f.Visible == "netns", "visible in its network namespace alone"},
		{f.HostState != "", "host " + clean(f.Host) + " (" + f.HostState + ")"},
		{f.QueuesRequested > 0 && len(f.Rings) > 0, fmt.Sprintf("queues %d of %d", len(f.Rings), f.QueuesRequested)},
		{queue != "", queue},
		{true, fmt.Sprintf("programs %d, queue pairs %d", f.Programs, f.QPs)},
		{f.Counters["spoofed_mac"]+f.Counters["spoofed_gid"] > 0, fmt.Sprintf("spoofed %d", f.Counters["spoofed_mac"]+f.Counters["spoofed_gid"])}} {
		if x.say {
			fmt.Fprintf(w, "  %s", x.text)
		}
	}
	fmt.Fprintln(w)
	for i := range f.IPoIB {
		f.IPoIB[i].writeText(w, "    ")
	}
}

// lidText is a LID with whose it is.
func lidText(f *FunctionFabric) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("LID %d%s", f.LID, map[string]string{"GID": " of the port", "LID": " of its own"}[f.Routing])
}

// writeFunctions prints the virtual functions of an adapter, if it has any or should have more.
func (s *AdapterStatus) writeFunctions(w io.Writer) {
	if v := s.SRIOV; v != nil && v.Support != "Unknown" {
		fmt.Fprintf(w, "  SR-IOV: %s, %d of %d virtual functions%s\n", v.Support, v.Granted, v.Requested, sub("; ", v.Cause))
	}
	s.VMQ.writeText(w)
	for i := range s.Functions {
		s.Functions[i].WriteText(w)
	}
}
