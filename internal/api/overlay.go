package api

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Overlay is what is said of virtual subnets, and what came of it (WinOF-2 1.21, 3.3.2 and appendix A).
type Overlay struct {
	Entries  []OverlayEntry  `json:"entries"`
	Switches []OverlayStatus `json:"switches"`
}

// OverlayEntry is a lookup record, a customer route, a provider address or a provider route.
type OverlayEntry struct {
	Kind          string `json:"kind" enum:"record,route,address,provider-route"`
	VSID          uint32 `json:"vsid,omitempty" doc:"The virtual subnet, of a record and a route."`
	Customer      string `json:"customer,omitempty" doc:"The customer address of a record."`
	MAC           string `json:"mac,omitempty" doc:"Of who has that."`
	Provider      string `json:"provider,omitempty" doc:"The provider address of the host where that is."`
	Machine       string `json:"machine,omitempty" doc:"The virtual machine that has it, a remark."`
	Domain        string `json:"domain,omitempty" doc:"The routing domain of a route."`
	Prefix        string `json:"prefix,omitempty" doc:"Where a route leads."`
	Via           string `json:"via,omitempty" doc:"The next hop of a route; 0.0.0.0 or :: of a customer route: whoever packets are for."`
	Metric        uint32 `json:"metric,omitempty" doc:"Of a route, the lower the better."`
	Adapter       string `json:"adapter,omitempty" doc:"Of a provider address and a provider route."`
	Address       string `json:"address,omitempty" doc:"A provider address of this host, with the length of its network."`
	VLAN          uint16 `json:"vlan,omitempty" doc:"Of a provider address."`
	Encapsulation string `json:"encapsulation,omitempty" doc:"How frames are sent from a provider address: vxlan, nvgre."`
	Configured    bool   `json:"configured,omitempty" doc:"The driver's configuration has it."`
}

// OverlayStatus is the overlay of an adapter's port, while adapters there are in virtual subnets.
type OverlayStatus struct {
	Adapter   string            `json:"adapter"`
	MAC       string            `json:"mac" doc:"Of its provider addresses."`
	Functions int               `json:"functions" doc:"Functions at the port that are in virtual subnets."`
	Records   int               `json:"records" doc:"Lookup records that there are."`
	Counters  map[string]uint64 `json:"counters" doc:"Frames since it began: sent and arrived in tunnels, with their bytes as sent_bytes and arrived_bytes, local, routed, answered, and dropped ones as dropped_REASON."`
}

// OverlayRequest adds an entry, or removes those that match.
type OverlayRequest struct {
	Kind     string   `json:"kind" doc:"record, route, address, provider-route."`
	Settings []string `json:"settings" doc:"Words: record vsid= customer= mac= provider= machine=; route domain= vsid= prefix= via= metric=; address adapter= address= vlan= encapsulation=vxlan|nvgre; provider-route adapter= prefix= via= metric=."`
}

// Overlay returns what is said of virtual subnets.
func (c *Client) Overlay(ctx context.Context) (o Overlay, err error) {
	err = c.call(ctx, "GET", OverlayURL, nil, nil, &o)
	return o, err
}

// AddOverlayEntry adds an entry.
func (c *Client) AddOverlayEntry(ctx context.Context, q OverlayRequest) (e OverlayEntry, err error) {
	err = c.call(ctx, "POST", OverlayURL, nil, q, &e)
	return e, err
}

// RemoveOverlayEntries removes entries, and returns them.
func (c *Client) RemoveOverlayEntries(ctx context.Context, q OverlayRequest) (list []OverlayEntry, err error) {
	err = c.call(ctx, "POST", OverlayURL+"/remove", nil, q, &list)
	return list, err
}

// Words are the entry's settings, as they can be given again.
func (e *OverlayEntry) Words() (words []string) {
	add := func(name, value string) {
		if value != "" && value != "0" {
			words = append(words, name+"="+value)
		}
	}
	add("domain", e.Domain)
	add("vsid", fmt.Sprint(e.VSID))
	add("customer", e.Customer)
	add("mac", e.MAC)
	add("provider", e.Provider)
	add("machine", e.Machine)
	add("adapter", e.Adapter)
	add("address", e.Address)
	add("vlan", fmt.Sprint(e.VLAN))
	add("encapsulation", e.Encapsulation)
	add("prefix", e.Prefix)
	add("via", e.Via)
	add("metric", fmt.Sprint(e.Metric))
	return words
}

// WriteText prints an entry as a line.
func (e *OverlayEntry) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%-14s  %s", e.Kind, clean(strings.Join(e.Words(), "  ")))
	if e.Configured {
		fmt.Fprint(w, "  (configuration)")
	}
	fmt.Fprintln(w)
}

// WriteText prints the entries, a line each, and what the overlay of each adapter has counted.
func (o *Overlay) WriteText(w io.Writer) {
	for i := range o.Entries {
		o.Entries[i].WriteText(w)
	}
	for _, s := range o.Switches {
		fmt.Fprintf(w, "overlay of %s  %s", clean(s.Adapter), s.MAC)
		names := []string{}
		for name, n := range s.Counters {
			if n > 0 {
				names = append(names, fmt.Sprintf("%s %d", name, n))
			}
		}
		slices.Sort(names)
		for _, n := range names {
			fmt.Fprintf(w, "  %s", n)
		}
		fmt.Fprintln(w)
	}
}
