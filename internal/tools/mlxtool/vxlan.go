package mlxtool

import (
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// vxlan shows how Ethernet functions handle frames in VXLAN (WinOF 5.50, 5.5.3.6; the manual does not print the output).
func (r *run) vxlan() (report, error) {
	list, err := r.interfaces(r.args)
	if err != nil {
		return nil, err
	}
	t := table{Fields: []string{"Interface Name", "VXLAN Offload", "UDP Port"}, Empty: "no Ethernet interfaces"}
	for _, a := range list {
		if a.InfiniBand != nil {
			continue
		}
		settings, err := r.client.Settings(r.ctx, a.Name)
		if err != nil {
			return nil, err
		}
		offload, port := vxlanOf(settings)
		if a.Ethernet == nil {
			offload = "no Ethernet function: the configuration names no host"
		} else if why := a.Ethernet.VXLANOff; why != "" {
			offload = "Disabled: " + why
		}
		t.add(a.Name, offload, port)
	}
	return report{t}, nil
}

// vxlanOf returns the state of the offload and its port, as the driver works with them. Virtual functions have no
// such keys, and the defaults.
func vxlanOf(settings []api.Setting) (offload, port string) {
	offload, port = "Enabled", strconv.Itoa(tunnel.Port)
	for i := range settings {
		switch s := &settings[i]; {
		case strings.EqualFold(s.Name, "*EncapsulatedPacketTaskOffloadVxlan"):
			offload = map[bool]string{true: "Enabled", false: "Disabled"}[s.Value == "1"]
		case strings.EqualFold(s.Name, "*VxlanUDPPortNumber"):
			port = s.Value
		}
	}
	return offload, port
}
