package verbs

import (
	"github.com/softvpi/softvpi/internal/command"
)

// PD is a protection domain (IBA 10.2.3): regions, windows, queue pairs and address handles can only be
// used together if they belong to the same domain.
type PD struct {
	dev    *Device
	handle command.Handle
}

// AllocPD allocates a protection domain.
func (d *Device) AllocPD() (*PD, error) {
	h, err := d.host.backend.AllocPD(d.host.ctx, d.index)
	if err != nil {
		return nil, wrap("allocate pd", err)
	}
	return &PD{dev: d, handle: h}, nil
}

// Device returns the adapter that the domain belongs to.
func (pd *PD) Device() *Device { return pd.dev }

// Close frees the domain; ErrBusy while it still has objects.
func (pd *PD) Close() error {
	h := pd.dev.host
	return h.destroyed("free pd", h.backend.Destroy(h.ctx, command.KindPD, pd.handle))
}
