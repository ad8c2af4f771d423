package cmdlets

import (
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/powershell"
)

// vm is a virtual machine as far as it is known here: by its network adapters. SoftVPI runs none; QEMU or whoever stands for one has its
// adapters' frames (docs/virtualization.md). One that is stopped has no link at any of them, as if it were.
type vm struct {
	name  string
	ports []vmPort
}

// off reports whether the machine is stopped: no adapter of it may have a link.
func (m *vm) off() bool {
	return !slices.ContainsFunc(m.ports, func(p vmPort) bool { return p.Link != "down" })
}

func (m *vm) object() *powershell.Object {
	return powershell.NewObject("VirtualMachine", "Name", "State", "NetworkAdapters").With("Name", m.name).
		With("State", map[bool]string{true: "Off", false: "Running"}[m.off()]).With("NetworkAdapters", int64(len(m.ports)))
}

// machines returns the machines that have adapters here, in the order of their first ones.
func (r *run) machines() (out []*vm, err error) {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return nil, err
	}
	for _, p := range r.ports(st) {
		if p.machine == "" {
			continue
		}
		i := slices.IndexFunc(out, func(m *vm) bool { return strings.EqualFold(m.name, p.machine) })
		if i < 0 {
			i = len(out)
			out = append(out, &vm{name: p.machine})
		}
		out[i].ports = append(out[i].ports, p)
	}
	return out, nil
}

// machinesMeant returns those of the names of a command, and warns of names of which there are none: a machine may well run that has no
// adapter here.
func (r *run) machinesMeant() (out []*vm, err error) {
	all, err := r.machines()
	if err != nil {
		return nil, err
	}
	for _, n := range r.Texts("Name") {
		found := false
		for _, m := range all {
			if !like(m.name, []string{n}) {
				continue
			}
			if found = true; !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
		if !found && !strings.ContainsAny(n, "*?") {
			r.Warn("no network adapter here is of a virtual machine %q, so that nothing changes (Add-VMNetworkAdapter makes one)", n)
		}
	}
	return out, nil
}

// getMachines is Get-VM.
func (r *run) getMachines() error {
	all, err := r.machines()
	if len(r.Texts("Name")) > 0 {
		all, err = r.machinesMeant()
	}
	if err != nil {
		return err
	}
	for _, m := range all {
		r.Emit(m.object())
	}
	return nil
}

// startMachines is Start-VM: adapters that were stopped have their link again.
func (r *run) startMachines() error { return r.switchMachines("down", "auto", "") }

// stopMachines is Stop-VM.
func (r *run) stopMachines() error {
	return r.switchMachines("", "down",
		"virtual machine %q is not SoftVPI's to stop, and runs on where it runs: its network adapters here have no link until Start-VM")
}

// switchMachines gives the adapters of machines a link state, those that have another one, if any, in its place. A command that finds
// everything so already changes nothing.
func (r *run) switchMachines(from, to, warning string) error {
	list, err := r.machinesMeant()
	if err != nil {
		return err
	}
	for _, m := range list {
		if !r.Should(r.Cmdlet.Name, m.name) {
			continue
		}
		for i := range m.ports {
			p := &m.ports[i]
			if p.Link == to || from != "" && p.Link != from {
				continue
			}
			if err := r.changePort(*p, []string{"link=" + to}); err != nil {
				return err
			}
			p.Link = to
		}
		if warning != "" {
			r.Warn(warning, m.name)
		}
		if r.Bool("Passthru") {
			r.Emit(m.object())
		}
	}
	return nil
}
