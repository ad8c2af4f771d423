package mlxtool

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// packetFilter shows which frames Ethernet functions pass to their hosts (WinOF 5.50, 5.5.3.1; the manual does not print the
// output).
func (r *run) packetFilter() (report, error) {
	list, err := r.interfaces(r.args)
	if err != nil {
		return nil, err
	}
	var out report
	var without []string
	for _, a := range list {
		without = append(without, a.Name)
		if a.Ethernet != nil {
			out = append(out, filterOf(a.Name, a.Ethernet))
		}
	}
	if len(out) == 0 {
		out = report{{Label: "Interface", Name: strings.Join(without, ", "), Fields: []string{"Filter", "Value"},
			Empty: "no Ethernet function: the configuration names no host"}}
	}
	return out, nil
}

// filterOf is the table of one interface: a row for each part of the filter.
func filterOf(name string, e *api.EthernetStatus) table {
	f := &e.Filter
	t := table{Label: "Interface", Name: name, Fields: []string{"Filter", "Value"}}
	t.add("Packet Filter", fmt.Sprintf("0x%02x", f.PacketFilter))
	t.add("Directed", f.Directed)
	t.add("Multicast", f.Multicast)
	t.add("All Multicast", f.AllMulticast)
	t.add("Broadcast", f.Broadcast)
	t.add("Promiscuous", f.Promiscuous)
	t.add("MAC Address", e.MAC)
	t.add("Multicast List", all(f.Groups))
	t.add("Multicast List Limit", f.MostGroups)
	t.add("VLANs", vlans(f))
	t.add("Largest Frame", f.LongestFrame)
	t.add("Flows", f.Flows)
	return t
}

// vlans says frames of which VLANs pass.
func vlans(f *api.FilterStatus) any {
	if f.AnyVLAN {
		return "all"
	}
	var list []string
	if f.Untagged {
		list = append(list, "untagged")
	}
	for _, id := range f.VLANs {
		list = append(list, fmt.Sprint(id))
	}
	return all(list)
}

// all joins a list.
func all(list []string) any {
	if len(list) == 0 {
		return notKnown
	}
	return strings.Join(list, " ")
}
