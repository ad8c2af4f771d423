package cmdlets

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// processorGroup is how many processors a group of Windows has, in the numbers of which a processor is shown.
const processorGroup = 64

// vmqViews are the commands that show queues and virtual ports of adapters.
func vmqViews() []cmdlet {
	show := func(name, help string, do func(*run) error) cmdlet {
		id := powershell.Param{Name: "Id", Kind: powershell.Number, Max: 255, Help: "Only the one with this number."}
		return cmdlet{powershell.Cmdlet{Name: name, Help: help, Params: []powershell.Param{adapterName(false), id}}, do}
	}
	return []cmdlet{
		show("Get-NetAdapterVmqQueue", "Show the virtual machine queues of adapters that virtual ports have, and the default queue.", (*run).getVMQQueues),
		show("Get-NetAdapterVPort", "Show the virtual ports of adapters: that of the adapter itself, of virtual functions, and of adapters of virtual switches.",
			(*run).getVPorts),
	}
}

// vmqState adds to what Get-NetAdapterVmq shows what an adapter offers, and how many queues there are.
func vmqState(o *powershell.Object, a *api.AdapterStatus) {
	if v := a.VMQ; v != nil {
		o.With("NumberOfReceiveQueues", int64(v.Queues)).With("QueuesInUse", int64(v.UsedQueues)).With("Offers", v.Offers)
	}
}

// vmqOn says what Enable-NetAdapterVmq does not bring about: "can enable VMQ on a network adapter only if the virtual switch which does not
// have SR-IOV enabled is defined over corresponding network adapter" (WinOF 5.50, 6.6).
func vmqOn(r *run, a *api.AdapterStatus) error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	for _, s := range st.VirtualSwitches {
		if s.Adapter == a.Name && !s.IOV {
			return nil
		}
	}
	r.Warn("no virtual switch without SR-IOV is over %q: its queues are for virtual ports of one (New-VMSwitch)", a.Name)
	return nil
}

// processorText is a processor as Windows shows it, GROUP:NUMBER.
func processorText(n int) string { return fmt.Sprintf("%d:%d", n/processorGroup, n%processorGroup) }

// owner is what the machine or the host calls a virtual port.
func (p *vmPort) owner() string {
	if p.machine != "" {
		return p.machine
	}
	return p.name
}

// wanted reports whether -Id asks for a number, or for none.
func (r *run) wanted(id int) bool { return !r.Given("Id") || r.Number("Id") == int64(id) }

func (r *run) getVMQQueues() error {
	list, st, err := r.adaptersWithPorts()
	if err != nil {
		return err
	}
	show := func(a *api.AdapterStatus, id int, mac string, vlan, processor any, owner string, c *api.QueueCounters) {
		if r.wanted(id) {
			r.Emit(powershell.NewObject("MSFT_NetAdapterVmqQueueSettingData", "Name", "QueueID", "MacAddress", "VlanID", "Processor", "VmFriendlyName").
				With("Name", a.Name).With("QueueID", int64(id)).With("MacAddress", mac).With("VlanID", vlan).With("Processor", processor).
				With("VmFriendlyName", owner).With("Packets", int64(c.Packets)).With("Bytes", int64(c.Bytes)).With("Dropped", int64(c.Dropped)))
		}
	}
	for _, a := range list {
		if a.VMQ == nil {
			continue
		}
		var processor any
		ports := r.portsAt(st, a)
		for _, p := range ports {
			if q := p.VMQ; q != nil && q.Number == 0 && len(p.Rings) > 0 {
				processor = processorText(p.Rings[0].Processor)
			}
		}
		show(a, 0, dashedMAC(a.MAC), nil, processor, "", &a.VMQ.Default)
		for _, p := range ports {
			if q := p.VMQ; q != nil && q.Number != 0 && len(p.Rings) > 0 {
				show(a, q.Number, dashedMAC(p.MAC), vlanOf(q), processorText(p.Rings[0].Processor), p.owner(), &q.QueueCounters)
			}
		}
	}
	return nil
}

// vlanOf is the VLAN of a queue's filter; nil: it has none, or several.
func vlanOf(q *api.QueueStatus) any {
	if len(q.Filters) != 1 || q.Filters[0].AnyVLAN {
		return nil
	}
	return int64(q.Filters[0].VLAN)
}

func (r *run) getVPorts() error {
	list, st, err := r.adaptersWithPorts()
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.VMQ == nil {
			continue
		}
		own := []api.RingStatus{}
		if a.Ethernet != nil {
			own = a.Ethernet.Rings
		}
		r.showVPort(a, 0, a.MAC, 0, "PF", a.Up, own)
		for n, p := range r.portsAt(st, a) {
			function := "PF"
			if p.iov > 0 {
				function = fmt.Sprint("VF ", p.Number)
			}
			r.showVPort(a, n+1, p.MAC, p.VLAN, function, p.Up, p.Rings)
		}
	}
	return nil
}

// showVPort shows a virtual port of an adapter, with the processors of its queues.
func (r *run) showVPort(a *api.AdapterStatus, id int, mac string, vlan uint16, function string, up bool, rings []api.RingStatus) {
	if !r.wanted(id) {
		return
	}
	var processors []any
	for _, x := range rings {
		processors = append(processors, processorText(x.Processor))
	}
	r.Emit(powershell.NewObject("MSFT_NetAdapterVPort", "Name", "ID", "MacAddress", "VID", "FID", "State", "QPairs").With("Name", a.Name).
		With("ID", int64(id)).With("MacAddress", dashedMAC(mac)).With("VID", int64(vlan)).With("FID", function).
		With("State", map[bool]string{true: "Activated", false: "Deactivated"}[up]).With("QPairs", int64(len(rings))).With("Processors", processors))
}

// adaptersWithPorts returns the adapters of -Name, and the status in which their ports are.
func (r *run) adaptersWithPorts() ([]*api.AdapterStatus, *api.Status, error) {
	list, err := r.named()
	if err != nil {
		return nil, nil, err
	}
	st, err := r.driver.Status(r.Context)
	return list, st, err
}

// portsAt returns the functions at the port of an adapter.
func (r *run) portsAt(st *api.Status, a *api.AdapterStatus) (out []vmPort) {
	for _, p := range r.ports(st) {
		if p.Adapter == a.Name {
			out = append(out, p)
		}
	}
	return out
}
