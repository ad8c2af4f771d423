package api

import (
	"context"
	"fmt"
	"io"
	"net/url"
)

// VirtualSwitch is a virtual switch over an adapter: a name for the switch in its port, with network adapters for the host, network
// namespaces and virtual machines, each a function at that port (WinOF-2 24.4, Configuring NDK for Virtual NICs: New-VMSwitch).
type VirtualSwitch struct {
	Name    string `json:"name"`
	Adapter string `json:"adapter" doc:"Over which it is."`
	Missing bool   `json:"missing,omitempty" doc:"The driver's configuration has no such adapter."`
	IOV     bool   `json:"iov" doc:"Adapters of machines may be virtual functions."`
	// PacketDirect and VFP are as WinOF-2 24.4, Using PacketDirect for VM, has them.
	PacketDirect bool            `json:"packetdirect" doc:"Programs of its adapters may have queues of frames."`
	VFP          bool            `json:"vfp" doc:"The filter platform is at its ports: those of machines pass nothing until it is disabled there."`
	Configured   bool            `json:"configured" doc:"The driver's configuration has the switch."`
	Adapters     []SwitchAdapter `json:"adapters"`
}

// SwitchAdapter is a network adapter of a virtual switch.
type SwitchAdapter struct {
	Function   string `json:"function" doc:"Name of its function, which identifies it."`
	Name       string `json:"name" doc:"As Get-VMNetworkAdapter shows it."`
	Machine    string `json:"machine,omitempty" doc:"The virtual machine that has it; missing: it is the host's."`
	Configured bool   `json:"configured" doc:"The driver's configuration has it."`
	IOVWeight  int    `json:"iov_weight" doc:"Not 0: it is a virtual function with RDMA; 0: a machine's adapter has its network interface alone."`
	RDMA       bool   `json:"rdma" doc:"Whether its programs have RDMA."`
	VMQWeight  int    `json:"vmq_weight" doc:"Of one that is no virtual function: 0: it has no receive queue of its own, and comes through the default one."`
	VMMQ       bool   `json:"vmmq" doc:"Of one that is no virtual function: whether its network interface has several receive queues."`
	VFP        bool   `json:"vfp" doc:"Whether the filter platform is enabled at the port, where the switch has it."`
	Blocked    bool   `json:"blocked" doc:"The filter platform keeps all frames from it and for it; they are counted."`
	// Status is that of its function.
	Status FunctionStatus `json:"status"`
}

// SwitchRequest makes a virtual switch.
type SwitchRequest struct {
	Name    string `json:"name" doc:"1 to 63 printable characters, no backslash."`
	Adapter string `json:"adapter" doc:"An Ethernet adapter with a wire of whole frames."`
	IOV     bool   `json:"iov,omitempty" doc:"Adapters of machines are virtual functions, with RDMA."`
	// PacketDirect and VFP can be changed later.
	PacketDirect bool `json:"packetdirect,omitempty" doc:"Programs of its adapters may have queues of frames."`
	VFP          bool `json:"vfp,omitempty" doc:"The filter platform is at its ports: those of machines pass nothing until it is disabled there."`
}

// SwitchSettings changes a virtual switch.
type SwitchSettings struct {
	Switch   string   `json:"-"`
	Settings []string `json:"settings" doc:"Words: packetdirect=on|off vfp=on|off."`
}

// SwitchAdapterRequest adds a network adapter to a virtual switch, or changes it.
type SwitchAdapterRequest struct {
	Switch   string   `json:"-"`
	Function string   `json:"function,omitempty" doc:"Of a new one: letters, digits, and - _ . between them; at most 31."`
	Settings []string `json:"settings" doc:"Words: name=TEXT machine=NAME|none iov=0..100 vmq=0..100 vmmq=on|off queues=0..64 rdma=on|off vfp=on|off, and those of virtual functions."`
}

func vswitchURL(name string, more ...string) string {
	at := VirtualSwitchesURL + "/" + url.PathEscape(name)
	for _, m := range more {
		at += "/" + url.PathEscape(m)
	}
	return at
}

// VirtualSwitches returns the virtual switches.
func (c *Client) VirtualSwitches(ctx context.Context) (list []VirtualSwitch, err error) {
	err = c.call(ctx, "GET", VirtualSwitchesURL, nil, nil, &list)
	return list, err
}

// CreateVirtualSwitch makes a virtual switch.
func (c *Client) CreateVirtualSwitch(ctx context.Context, q SwitchRequest) (s VirtualSwitch, err error) {
	err = c.call(ctx, "POST", VirtualSwitchesURL, nil, q, &s)
	return s, err
}

// SetVirtualSwitch changes a virtual switch.
func (c *Client) SetVirtualSwitch(ctx context.Context, q SwitchSettings) error {
	return c.call(ctx, "PATCH", vswitchURL(q.Switch), nil, q, nil)
}

// RemoveVirtualSwitch removes a virtual switch with its network adapters.
func (c *Client) RemoveVirtualSwitch(ctx context.Context, name string) error {
	return c.call(ctx, "DELETE", vswitchURL(name), nil, nil, nil)
}

// AddSwitchAdapter adds a network adapter to a virtual switch.
func (c *Client) AddSwitchAdapter(ctx context.Context, q SwitchAdapterRequest) (a SwitchAdapter, err error) {
	err = c.call(ctx, "POST", vswitchURL(q.Switch, "adapters"), nil, q, &a)
	return a, err
}

// SetSwitchAdapter changes a network adapter of a virtual switch.
func (c *Client) SetSwitchAdapter(ctx context.Context, q SwitchAdapterRequest) error {
	at := vswitchURL(q.Switch, "adapters", q.Function)
	q.Function = ""
	return c.call(ctx, "PATCH", at, nil, q, nil)
}

// RemoveSwitchAdapter removes a network adapter from a virtual switch.
func (c *Client) RemoveSwitchAdapter(ctx context.Context, name, function string) error {
	return c.call(ctx, "DELETE", vswitchURL(name, "adapters", function), nil, nil, nil)
}

// WriteText prints a virtual switch, and a line for each of its adapters.
func (s *VirtualSwitch) WriteText(w io.Writer) {
	fmt.Fprintf(w, "virtual switch %s over %s", clean(s.Name), clean(s.Adapter))
	if s.IOV {
		fmt.Fprint(w, ", SR-IOV")
	}
	for _, x := range []struct {
		say  bool
		text string
	}{{s.PacketDirect, ", PacketDirect"}, {s.VFP, ", filter platform"}} {
		if x.say {
			fmt.Fprint(w, x.text)
		}
	}
	if s.Missing {
		fmt.Fprint(w, ": there is no such adapter now")
	}
	fmt.Fprintln(w)
	for i := range s.Adapters {
		s.Adapters[i].WriteText(w)
	}
}

// WriteText prints a network adapter of a virtual switch as a line.
func (a *SwitchAdapter) WriteText(w io.Writer) {
	f, queue := &a.Status, ""
	if f.VMQ != nil {
		queue = f.VMQ.Text()
	}
	fmt.Fprintf(w, "  %s  %s", clean(a.Function), f.MAC)
	for _, x := range []struct {
		say  bool
		text string
	}{{a.Machine != "", "machine " + clean(a.Machine)}, {a.Machine == "", "host"}, {a.Name != a.Function, `"` + clean(a.Name) + `"`},
		{f.VLAN != 0, fmt.Sprint("VLAN ", f.VLAN)}, {f.VSID != 0, fmt.Sprint("virtual subnet ", f.VSID)},
		{true, map[bool]string{true: "up", false: "down"}[f.Up]},
		{a.Blocked, fmt.Sprint("blocked by the filter platform (frames sent ", f.Counters["blocked_sent"], ", for it ", f.Counters["blocked_received"], ")")},
		{f.TAP != "", "tap " + clean(f.TAP)},
		{f.HostState != "", "host " + clean(f.Host) + " (" + f.HostState + ")"},
		{len(f.Rings) > 0, fmt.Sprint("queues ", len(f.Rings))}, {queue != "", queue}, {true, map[bool]string{true: "RDMA", false: "no RDMA"}[a.RDMA]},
		{a.RDMA, fmt.Sprintf("programs %d", f.Programs)}} {
		if x.say {
			fmt.Fprintf(w, "  %s", x.text)
		}
	}
	fmt.Fprintln(w)
}
