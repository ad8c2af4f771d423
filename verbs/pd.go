package verbs

import (
	"github.com/softvpi/softvpi/internal/command"
)

// PD is a protection domain (IBA 10.2.3): regions, windows, queue pairs and
// address handles of one domain work together, those of different domains do not.
type PD struct {
	dev    *Device
	handle command.Handle
}

// AllocPD makes a protection domain.
func (d *Device) AllocPD() (*PD, error) {
	h, err := d.host.backend.AllocPD(d.host.ctx, d.index)
	if err != nil {
		return nil, wrap("allocate pd", err)
	}
	return &PD{dev: d, handle: h}, nil
}

// Device returns the adapter of the domain.
func (pd *PD) Device() *Device { return pd.dev }

// Close frees the domain; ErrBusy while objects of it exist.
func (pd *PD) Close() error {
	h := pd.dev.host
	return h.destroyed("free pd", h.backend.Destroy(h.ctx, command.KindPD, pd.handle))
}
