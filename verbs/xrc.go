package verbs

import (
	"os"

	"github.com/softvpi/softvpi/internal/command"
)

// XRCDomain is an XRC domain (IBA annex A14.2): shared receive queues, and the target QPs through which messages for any of
// them arrive. With extended reliable connections a process needs one connection to each host, and not one to each
// process there: an initiator QP names, in every request, the shared receive queue that it is for.
type XRCDomain struct {
	dev    *Device
	handle command.Handle
}

// XRCDomainConfig says which domain is opened. Its zero value is a new one of the program's own.
type XRCDomainConfig struct {
	// File, any file, stands for a domain: programs of one user that open a domain with the same file share it, while any
	// of them has it open. Nil: the domain is shared with nobody. Not on Windows.
	File *os.File
	// Existing: the file must have a domain already, else ErrNotFound.
	Existing bool
	// Exclusive: it must not, else ErrInUse.
	Exclusive bool
}

// OpenXRCDomain opens an XRC domain. Errors are those that XRCDomainConfig names, ErrUnsupported where a driver knows no
// XRC, and ErrExhausted.
func (d *Device) OpenXRCDomain(c XRCDomainConfig) (*XRCDomain, error) {
	q := command.OpenXRCD{Adapter: d.index}
	if !c.Existing {
		q.Flags |= command.XRCDCreate
	}
	if c.Exclusive {
		q.Flags |= command.XRCDExclusive
	}
	if c.File != nil {
		var err error
		if q.Device, q.Inode, err = identity(c.File); err != nil {
			return nil, newError("open xrc domain", ErrInvalid, "File: %v", err)
		}
		q.Flags |= command.XRCDFile
	}
	h, err := d.host.backend.OpenXRCD(d.host.ctx, q)
	if err != nil {
		return nil, wrap("open xrc domain", err)
	}
	return &XRCDomain{dev: d, handle: h}, nil
}

// Close closes the domain; ErrBusy while the program has queues or targets in it.
func (x *XRCDomain) Close() error {
	h := x.dev.host
	return h.destroyed("close xrc domain", h.backend.Destroy(h.ctx, command.KindXRCD, x.handle))
}

// CreateTarget creates the receiving end of an extended reliable connection, in state Reset. It has no queues of its own:
// what it receives takes receives of the domain's SRQs and completes in their CQs. context is returned in completions and
// events.
func (x *XRCDomain) CreateTarget(context uint64) (*QP, error) {
	h, life := x.dev.host, x.dev.live()
	q, err := h.backend.CreateQP(h.ctx, command.CreateQP{Type: command.XRCTarget, XRCD: x.handle, Context: context})
	if err != nil {
		return nil, wrap("create qp", err)
	}
	return x.target(&q, life, context), nil
}

// OpenTarget opens the target with this number, which may be another program's, of a domain that both have open. Both can
// modify it, and get its events. It ends when the last one closes it. ErrNotFound: the domain has no such target.
func (x *XRCDomain) OpenTarget(number uint32, context uint64) (*QP, error) {
	h, life := x.dev.host, x.dev.live()
	q, err := h.backend.OpenQP(h.ctx, command.OpenQP{XRCD: x.handle, Number: number, Context: context})
	if err != nil {
		return nil, wrap("open qp", err)
	}
	return x.target(&q, life, context), nil
}

func (x *XRCDomain) target(q *command.QueuePair, life life, context uint64) *QP {
	return &QP{
		pd: &PD{dev: x.dev}, backend: x.dev.host.backend, handle: q.Handle, number: q.Number,
		cfg: QPConfig{Type: XRCTarget, Context: context}, life: life,
	}
}
