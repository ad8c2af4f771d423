package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// VirtualSwitch is a virtual switch over an adapter (docs/virtualization.md). What it and its adapters are else is checked when the
// driver makes them.
type VirtualSwitch struct {
	Name    string `json:"name"`
	Adapter string `json:"adapter"`
	// IOV lets adapters of machines be virtual functions, with RDMA.
	IOV bool `json:"iov,omitempty"`
	// PacketDirect lets programs of its adapters have queues of frames, and VFP has the filter platform at the ports of machines.
	PacketDirect bool            `json:"packetdirect,omitempty"`
	VFP          bool            `json:"vfp,omitempty"`
	Adapters     []SwitchAdapter `json:"adapters,omitempty"`
}

// SwitchAdapter is a network adapter of a virtual switch: the name of its function, and its settings as softvpi vswitch add takes them.
type SwitchAdapter struct {
	Function string   `json:"function"`
	Settings []string `json:"settings,omitempty"`
}

// completeVirtualSwitches checks that the virtual switches are over adapters that there are, and that nothing is there twice.
func (c *Config) completeVirtualSwitches() error {
	names, over, functions := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, s := range c.VirtualSwitches {
		field := func(name string) string { return fmt.Sprintf("virtual_switches[%d].%s", i, name) }
		var adapters []string
		for _, a := range c.Adapters {
			adapters = append(adapters, strconv.Quote(a.Name))
		}
		switch name := strings.ToLower(s.Name); {
		case name == "" || names[name]:
			return api.Wrong(field("name"), strconv.Quote(s.Name), "a name that no other virtual switch has, in capitals or not")
		case !slices.Contains(adapters, strconv.Quote(s.Adapter)):
			return api.Wrong(field("adapter"), strconv.Quote(s.Adapter), strings.Join(adapters, ", "))
		case over[s.Adapter]:
			return api.Wrong(field("adapter"), strconv.Quote(s.Adapter)+" again", "one that no other virtual switch is over")
		}
		names[strings.ToLower(s.Name)], over[s.Adapter] = true, true
		for j, a := range s.Adapters {
			if name := strings.ToLower(a.Function); name == "" || functions[name] {
				return api.Wrong(field(fmt.Sprintf("adapters[%d].function", j)), strconv.Quote(a.Function),
					"a name that no other network adapter has, in capitals or not")
			}
			functions[strings.ToLower(a.Function)] = true
		}
	}
	return nil
}
