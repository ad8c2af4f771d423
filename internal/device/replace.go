package device

import (
	"slices"

	"github.com/softvpi/softvpi/internal/command"
)

// replacedPort returns the adapter whose port one shares that takes the place of old, nil if none, and completes its configuration. Who
// shares another's port leaves it, and the port goes on; the adapter whose port it is stays while others share it. Errors are
// *command.Error.
func (h *Host) replacedPort(old *adapter, cfg *AdapterConfig) (*adapter, error) {
	if old.cfg.ShareWith == nil && len(old.port.functions) > 1 {
		return nil, command.Errorf(command.Busy, "adapter %q shares its port with other functions", old.name)
	}
	if cfg.ShareWith != nil && int(*cfg.ShareWith) < len(h.adapters) && h.adapters[*cfg.ShareWith].port == old.port {
		return nil, command.Errorf(command.Busy, "adapter %q is at the port of adapter %d already", old.name, *cfg.ShareWith)
	}
	return h.sharedPort(cfg)
}

// leavePort takes an adapter from its port, at which another is not that takes its place. A port without functions is gone.
func (h *Host) leavePort(old, a *adapter) {
	at, ports := slices.Index(h.ports, old.port), 1
	if old.cfg.ShareWith != nil {
		old.port.dismiss(old)
		at, ports = len(h.ports), 0
	}
	var own []*portLoop
	if a.cfg.ShareWith == nil {
		own = append(own, a.port)
	}
	h.ports = slices.Replace(h.ports, at, at+ports, own...)
}

// ChangeWire calls change, which gives a link of an adapter's, made of others, one more or one less, while nobody uses it. What is not part
// of it any more may be closed afterwards.
func (h *Host) ChangeWire(change func() error) error {
	err := func() error {
		h.lock()
		defer h.finish()
		h.watched++
		h.sleep.wake()
		return change()
	}()
	h.evict()
	return err
}
