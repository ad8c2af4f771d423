package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/ethernet/wake"
)

// SleepEthernet puts the host of an adapter's Ethernet function to sleep, or changes the patterns by which frames wake one that
// sleeps. Errors are *command.Error.
func (h *Host) SleepEthernet(index uint32, patterns []wake.Pattern) error {
	return h.withNIC(index, func(n *nic) error {
		if err := n.side.Sleep(patterns); err != nil {
			return command.Errorf(command.Invalid, "%v", err)
		}
		return nil
	})
}

// WakeEthernet wakes the host of an adapter's Ethernet function, and reports whether it slept. Errors are *command.Error.
func (h *Host) WakeEthernet(index uint32) (slept bool, err error) {
	err = h.withNIC(index, func(n *nic) error {
		slept = n.side.Wake()
		return nil
	})
	return slept, err
}

// withNIC does something with an adapter's Ethernet function, which has to work.
func (h *Host) withNIC(index uint32, do func(*nic) error) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	switch {
	case err != nil:
		return err
	case a.nic == nil:
		return command.Errorf(command.Unsupported, "adapter %q has no Ethernet function; a host in its configuration gives it one", a.name)
	case !a.nic.on():
		return command.Errorf(command.State, "the Ethernet function of adapter %q does not work: the adapter is disabled", a.name)
	}
	return do(a.nic)
}
