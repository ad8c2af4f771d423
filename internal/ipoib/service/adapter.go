package service

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/mad"
)

// lookAgain is how often the port is checked in addition to when an event reports a change.
const lookAgain = time.Second

// Device implements Adapter for an adapter of this process.
type Device struct {
	host  *device.Host
	index uint32
	look  func() (p link.Port, seen uint64) // the port, and a number that changes with it
	verbs *verbs.Host
	dev   *verbs.Device
	ctx   context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup

	mu    sync.Mutex
	port  *Port
	asked map[uint64]struct{} // transactions in progress
}

// NewDevice creates the Adapter for an adapter of h that is plugged into l, and runs a port on it. The
// port must be closed before the Device.
func NewDevice(h *device.Host, index uint32, name string, l link.InfiniBand, random func() uint64) (*Device, *Port, error) {
	v, err := verbs.Within(h, "IPoIB on "+name)
	if err != nil {
		return nil, nil, err
	}
	return newDevice(h, index, name, v, func() (link.Port, uint64) {
		seen := l.Changes() // before: what changes then is seen again
		return l.Port(), seen
	}, random)
}

// NewFunctionDevice is NewDevice for a virtual function of h at an InfiniBand port, by its index and name.
func NewFunctionDevice(h *device.Host, index uint32, name string, random func() uint64) (*Device, *Port, error) {
	v, err := verbs.WithinFunction(h, "IPoIB on "+name, index)
	if err != nil {
		return nil, nil, err
	}
	return newDevice(h, index, name, v, func() (p link.Port, seen uint64) {
		p, seen, _ = h.FabricPort(index) // one that is gone has no port, which is down
		return p, seen
	}, random)
}

func newDevice(h *device.Host, index uint32, name string, v *verbs.Host, look func() (link.Port, uint64),
	random func() uint64) (*Device, *Port, error) {
	dev, err := v.Device(name)
	if err != nil {
		return nil, nil, errors.Join(err, v.Close())
	}
	d := &Device{host: h, index: index, look: look, verbs: v, dev: dev, asked: map[uint64]struct{}{}}
	d.ctx, d.end = context.WithCancel(context.Background())
	p := newPort(d, random)
	d.port = p
	w := v.Watch()
	d.tasks.Go(func() { d.watch(p, w) })
	return d, p, nil
}

// Close ends what NewDevice started.
func (d *Device) Close() error {
	d.end()
	d.tasks.Wait()
	return d.verbs.Close()
}

// watch tells the port of changes.
func (d *Device) watch(p *Port, w *verbs.Watcher) {
	defer w.Close()
	seen := uint64(0)
	for d.ctx.Err() == nil {
		if _, n := d.look(); n != seen {
			seen = n
			p.changed()
		}
		ctx, cancel := context.WithTimeout(d.ctx, lookAgain)
		_, _ = w.Next(ctx)
		cancel()
	}
}

// Port implements Adapter.
func (d *Device) Port() ipoib.Port {
	p, _ := d.look()
	out := ipoib.Port{Active: p.State == mad.PortActive, LID: p.LID, LMC: p.LMC, SMLID: p.SMLID, SMSL: p.SMSL, PKeys: p.PKeys, MTU: p.MTU,
		Reregister: p.Reregister}
	if len(p.GUIDs) > 0 {
		binary.BigEndian.PutUint64(out.GID[:], p.Prefix)
		binary.BigEndian.PutUint64(out.GID[8:], p.GUIDs[0])
	}
	return out
}

// Ask implements Adapter. The adapter itself retransmits: repetitions of a request in progress are
// dropped.
func (d *Device) Ask(r *ipoib.Request) error {
	m, err := mad.ParseSA(r.MAD[:])
	if err != nil {
		return err
	}
	d.mu.Lock()
	_, doubled := d.asked[m.TransactionID]
	d.asked[m.TransactionID] = struct{}{}
	d.mu.Unlock()
	if doubled {
		return nil
	}
	d.tasks.Go(func() { d.ask(&m) })
	return nil
}

func (d *Device) ask(m *mad.SA) {
	data, err := d.host.AskSA(d.ctx, d.index, sa.Request{Method: m.Method, Attribute: m.AttributeID, Mask: m.ComponentMask,
		Data: m.Data[:]})
	d.mu.Lock()
	delete(d.asked, m.TransactionID)
	p := d.port
	d.mu.Unlock()
	var refused *sa.StatusError
	switch {
	case err == nil:
		m.Data = data
	case errors.As(err, &refused):
		m.Status = refused.Status
	default:
		return // there was no answer
	}
	if m.Method == mad.MethodSet {
		m.Method = mad.MethodGet
	}
	m.Method |= 0x80
	p.answer(m.Append(nil))
}

// Open implements Adapter.
func (d *Device) Open(b Buffers, receive func([]ipoib.Arrival)) (QueuePair, error) {
	q := &queuePair{dev: d.dev, depth: b, receive: receive, ways: map[ipoib.Path]*verbs.AH{}}
	if err := q.open(); err != nil {
		q.release()
		return nil, err
	}
	q.ctx, q.end = context.WithCancel(d.ctx)
	q.ended.Go(q.run)
	return q, nil
}
