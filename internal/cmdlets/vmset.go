package cmdlets

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// mostBandwidth is the largest rate of a virtual function, in bit/s.
const mostBandwidth = 1e12

// setPort changes virtual functions. What it cannot do is refused before anything is changed.
func (r *run) setPort() error {
	if r.Bool("MacAddressSpoofing") {
		return fmt.Errorf("%w: the source addresses of virtual functions are checked always (docs/virtualization.md); nothing is changed", api.ErrUnsupported)
	}
	settings, err := r.portSettings()
	if err != nil {
		return err
	}
	if len(settings) == 0 && !r.Given("MacAddressSpoofing") {
		return &powershell.ParameterError{Parameter: "what to set is missing",
			Allowed: "-StaticMacAddress, -VirtualSubnetId, -MaximumBandwidth, -MinimumBandwidthAbsolute, -IovWeight, -IovQueuePairsRequested, " +
				"-VmqWeight, -VmmqEnabled, -VmmqQueuePairs"}
	}
	return r.changePorts(settings)
}

// portSettings returns the settings of network adapters that the parameters of Set-VMNetworkAdapter stand for.
func (r *run) portSettings() (out []string, err error) {
	if r.Given("StaticMacAddress") {
		mac, err := colonMAC("StaticMacAddress", r.Text("StaticMacAddress"))
		if err != nil {
			return nil, err
		}
		out = append(out, "mac="+mac)
	}
	if r.Given("VirtualSubnetId") {
		out = append(out, fmt.Sprintf("vsid=%d", r.Number("VirtualSubnetId")))
	}
	if r.Given("IovWeight") {
		out = append(out, fmt.Sprintf("iov=%d", r.Number("IovWeight")))
	}
	if r.Given("VmqWeight") {
		out = append(out, fmt.Sprintf("vmq=%d", r.Number("VmqWeight")))
	}
	if r.Given("VmmqEnabled") {
		out = append(out, map[bool]string{true: "vmmq=on", false: "vmmq=off"}[r.Bool("VmmqEnabled")])
	}
	if r.Given("VmmqQueuePairs") && r.Given("IovQueuePairsRequested") {
		return nil, &powershell.ParameterError{Parameter: "-IovQueuePairsRequested", Value: fmt.Sprint(r.Number("IovQueuePairsRequested")),
			Allowed: "without -VmmqQueuePairs: both are the queues that the adapter asks for"}
	}
	for _, param := range []string{"VmmqQueuePairs", "IovQueuePairsRequested"} {
		if r.Given(param) {
			out = append(out, fmt.Sprintf("queues=%d", r.Number(param)))
		}
	}
	for _, x := range []struct{ param, setting string }{{"MaximumBandwidth", "max"}, {"MinimumBandwidthAbsolute", "min"}} {
		if r.Given(x.param) {
			const mega = 1e6
			out = append(out, fmt.Sprintf("%s=%d", x.setting, (r.Number(x.param)+mega-1)/mega))
		}
	}
	return out, nil
}

// changePorts gives the adapters that a command means settings; none: it only looks whether they are there.
func (r *run) changePorts(settings []string) error {
	list, err := r.chosenPorts()
	if err != nil {
		return err
	}
	for _, p := range list {
		if len(settings) == 0 || !r.Should(r.Cmdlet.Name, strings.TrimSpace(p.machine+" "+p.name)) {
			continue
		}
		if err := r.changePort(p, settings); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) setPortVLAN() error {
	var modes []string
	for _, m := range []string{"Untagged", "Access", "Trunk"} {
		if r.Bool(m) {
			modes = append(modes, "-"+m)
		}
	}
	if len(modes) != 1 {
		return &powershell.ParameterError{Parameter: "how frames are tagged", Value: strings.Join(modes, " "), Allowed: "one of -Untagged, -Access, -Trunk"}
	}
	needs := map[string]string{"-Access": "VlanId", "-Trunk": "AllowedVlanIdList"}
	for mode, param := range needs {
		if (mode == modes[0]) != r.Given(param) {
			return &powershell.ParameterError{Parameter: "-" + param, Value: r.Text(param), Allowed: "with " + mode + ", and only with it"}
		}
	}
	if r.Number("NativeVlanId") != 0 {
		return &powershell.ParameterError{Parameter: "-NativeVlanId", Value: fmt.Sprint(r.Number("NativeVlanId")), Allowed: "0"}
	}
	switch modes[0] {
	case "-Access":
		return r.changePorts([]string{fmt.Sprintf("vlan=%d", r.Number("VlanId")), "vlans=none"})
	case "-Trunk":
		return r.changePorts([]string{"vlan=0", "vlans=" + strings.NewReplacer(",", "+", " ", "").Replace(r.Text("AllowedVlanIdList"))})
	}
	return r.changePorts([]string{"vlan=0", "vlans=none"})
}

func (r *run) getPortRDMA() error {
	list, err := r.chosenPorts()
	if err != nil {
		return err
	}
	for _, p := range list {
		var machine any
		if p.machine != "" {
			machine = p.machine
		}
		r.Emit(powershell.NewObject("VMNetworkAdapterRdma").With("VMName", machine).With("Name", p.name).With("RdmaWeight", rdmaWeight(&p)))
	}
	return nil
}

func rdmaWeight(p *vmPort) int64 {
	if p.NoRDMA {
		return 0
	}
	return 100
}

func (r *run) setPortRDMA() error {
	return r.changePorts([]string{map[bool]string{true: "rdma=on", false: "rdma=off"}[r.Number("RdmaWeight") > 0]})
}
