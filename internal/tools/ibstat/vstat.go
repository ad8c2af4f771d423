package ibstat

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

const vstatSynopsis = `usage: vstat [options]
Shows the attributes of the adapters, their ports and their GIDs.`

// Vstat runs vstat.
func Vstat(ctx context.Context, env tool.Env) int {
	f, socket, asJSON := started(env, vstatSynopsis)
	name := f.String("hca", "", "`adapter` by name or number from 0 (default: all)")
	verbose := f.Bool("v", false, "also show limits and empty GIDs")
	if status, done := f.Parse(); done {
		return status
	}
	if err := f.NoArguments(); err != nil {
		return f.Refuse(err)
	}
	list, err := devices(ctx, *socket)
	if err == nil {
		list, err = pick(list, *name)
	}
	if err != nil {
		return env.End(ctx, err)
	}
	if *asJSON {
		err = writeJSON(env.Stdout, list)
	} else {
		for _, d := range list {
			vstat(env.Stdout, d, *verbose)
		}
	}
	if err != nil {
		return env.Fail(err)
	}
	return tool.Success
}

// The names of states, by number.
var (
	portStates = [8]string{"PORT_NOP", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE", "PORT_UNKNOWN", "PORT_UNKNOWN",
		"PORT_UNKNOWN"}
	physicalStates = [8]string{"NOP", "SLEEP", "POLLING", "DISABLED", "TRAINING", "LINK_UP", "LINK_ERROR_RECOVERY", "PHY_TEST"}
)

func vstat(w io.Writer, d device, verbose bool) {
	line := func(depth int, format string, args ...any) {
		fmt.Fprintf(w, "%*s"+format+"\n", append([]any{8 * depth, ""}, args...)...)
	}
	line(1, "hca_idx=%d", d.Index)
	line(1, "interface=%s", d.Name)
	line(1, "vendor_id=0x%04x", d.VendorID)
	line(1, "vendor_part_id=%d", d.PartID)
	line(1, "hw_ver=0x%s", d.Hardware)
	line(1, "fw_ver=%s", d.Firmware)
	line(1, "node_guid=%s", guid(d.NodeGUID))
	line(1, "num_phys_ports=%d", len(d.Ports))
	for _, p := range d.Ports {
		line(2, "port=%d", p.Number)
		line(2, "interface=%s", cmp.Or(p.Name, d.Name))
		line(2, "port_guid=%s", guid(p.GUID))
		line(2, "port_state=%s (%d)", portStates[p.State&7], p.State)
		line(2, "link_speed=%s Gbps", gbps(p.Rate/float64(max(p.Lanes, 1))))
		line(2, "link_width=%dx (%d)", p.Lanes, mad.WidthOf(p.Lanes))
		line(2, "rate=%s Gbps", gbps(p.Rate))
		line(2, "port_phys_state=%s (%d)", physicalStates[p.Physical&7], p.Physical)
		line(2, "active_speed=%s Gbps", gbps(p.Rate/float64(max(p.Lanes, 1))))
		line(2, "sm_lid=0x%04x", uint16(p.SMLID))
		line(2, "port_lid=0x%04x", uint16(p.LID))
		line(2, "port_lmc=0x%x", p.LMC)
		line(2, "transport=%s", p.Transport)
		line(2, "max_mtu=%d (%d)", p.MaxMTU, mtuCode(p.MaxMTU))
		line(2, "active_mtu=%d (%d)", p.ActiveMTU, mtuCode(p.ActiveMTU))
		for i, g := range p.GIDs {
			line(2, "GID[%d]=%s", i, g)
		}
		if verbose && p.status != nil {
			line(2, "link_mtu=%d", p.status.LinkMTU)
			line(2, "udp_port=%d", p.status.UDPPort)
			line(2, "path=%s", p.status.Path)
		}
	}
	fmt.Fprintln(w)
}
