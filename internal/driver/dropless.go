package driver

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/port"
)

const (
	// oidSignature is in the information buffer of WinOF-2 before the mode, 1 or 2.
	oidSignature = 0x0C1EA2
	oidModeAt    = 4
	oidEnter     = 1
	oidLeave     = 2
	// dropUnit is DelayDropTimeout's, dropForever its value without end in WinOF, and dropDefault WinOF-2's without the key.
	dropUnit    = 100 * time.Microsecond
	dropForever = 65535
	dropDefault = 50
)

// delayDrop returns how long a packet waits in dropless mode by adapter i's key, 0 if that switches it off, and whether the key is set.
func (r *running) delayDrop() (t time.Duration, stored bool) {
	n, stored := r.number("DelayDropTimeout")
	if r.Generation == catalogue.MLX4 && n == dropForever {
		return port.Forever, stored
	}
	return time.Duration(n) * dropUnit, stored
}

// startDropless makes adapter i's port begin in the mode that its keys ask for: WinOF-2's with DelayDropTimeout in dropless mode,
// WinOF's always without (WinOF 5.50, 4.1.12.2.3).
func (d *Driver) startDropless(i int) error {
	r := d.running[i]
	t, stored := r.delayDrop()
	if r.Generation == catalogue.MLX4 || !stored {
		t = 0
	}
	if d.host.CheckFlowControl(uint32(i)) != nil { // which is told where flow control is
		return nil
	}
	if err := d.host.SetDropless(uint32(i), t); err != nil || t == 0 {
		return err
	}
	d.tellDropless(i, true)
	return nil
}

// tellDropless writes the event of an adapter that enters dropless mode, or leaves it.
func (d *Driver) tellDropless(i int, on bool) {
	r, slot := d.running[i], d.cfg.Slot(i)
	if on {
		d.events.Raise(r.Generation, events.DroplessEntered{Adapter: r.Name, Device: slot.Device, Port: slot.Port})
		return
	}
	d.events.Raise(r.Generation, events.DroplessExited{Adapter: r.Name, Device: slot.Device, Port: slot.Port})
}

// expiry is a receive queue for which a packet has waited too long.
type expiry struct{ adapter, queue uint32 }

// expiries writes the events of dropless modes that have ended by themselves, by a goroutine: whoever tells of them drives the loop.
type expiries struct {
	news chan expiry
	done chan struct{}
}

// followExpiries begins to write events. More than mostEvents that wait are lost.
func (d *Driver) followExpiries() (told func(adapter, queue uint32)) {
	x := &expiries{news: make(chan expiry, mostEvents), done: make(chan struct{})}
	d.expiries = x
	go func() {
		defer close(x.done)
		for e := range x.news {
			if int(e.adapter) >= len(d.running) {
				continue
			}
			r, slot := d.running[e.adapter], d.cfg.Slot(int(e.adapter))
			d.events.Raise(r.Generation, events.DelayDropTimeout{Adapter: r.Name, Device: slot.Device, Port: slot.Port, Queue: e.queue})
		}
	}()
	return func(adapter, queue uint32) {
		select {
		case x.news <- expiry{adapter, queue}:
		default:
		}
	}
}

func (x *expiries) close() {
	if x != nil {
		close(x.news)
		<-x.done
	}
}

// setDropless enters dropless mode, or leaves it, as an information buffer asks.
func (d *Driver) setDropless(index uint32, buffer string) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	r := d.running[index]
	on, err := droplessAsked(r.Generation, buffer)
	if err != nil {
		return err
	}
	if err := d.host.CheckFlowControl(index); err != nil {
		return fmt.Errorf("%w: dropless mode: %s", api.ErrUnsupported, detail(err))
	}
	t, _ := r.delayDrop()
	switch {
	case !on:
		t = 0
	case t == 0 && r.Generation == catalogue.MLX4:
		return fmt.Errorf("%w: dropless mode: DelayDropTimeout is 0", api.ErrUnsupported)
	case t == 0:
		t = dropDefault * dropUnit
	}
	if err := d.host.SetDropless(index, t); err != nil {
		return err
	}
	d.tellDropless(int(index), on)
	return nil
}

// droplessAsked reads an information buffer. WinOF's is a byte, 1 or 0; WinOF-2's a structure of a signature and a mode, with or without
// what a compiler fills it up with.
func droplessAsked(g catalogue.Generation, text string) (on bool, err error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return false, api.Wrong("buffer", strconv.Quote(text), "bytes in hexadecimal")
	}
	if g == catalogue.MLX4 {
		if len(b) != 1 || b[0] > oidEnter {
			return false, api.Wrong("buffer", strconv.Quote(text), "00 (leave dropless mode), 01 (enter it)")
		}
		return b[0] == oidEnter, nil
	}
	if (len(b) != oidModeAt+1 && len(b) != oidModeAt+4) || binary.LittleEndian.Uint32(b) != oidSignature ||
		b[oidModeAt] != oidEnter && b[oidModeAt] != oidLeave {
		return false, api.Wrong("buffer", strconv.Quote(text), "a21e0c0001 (signature, enter dropless mode), a21e0c0002 (leave it)")
	}
	return b[oidModeAt] == oidEnter, nil
}

// queryDropless returns the information buffer of an adapter's mode.
func (d *Driver) queryDropless(index uint32) (api.OIDAnswer, error) {
	s := d.host.Overview().Adapters[index].Flow
	if s.Refused != nil {
		return api.OIDAnswer{}, fmt.Errorf("%w: dropless mode: %s", api.ErrUnsupported, detail(s.Refused))
	}
	var b []byte
	if d.running[index].Generation != catalogue.MLX4 {
		b = binary.LittleEndian.AppendUint32(nil, oidSignature)
	}
	mode := byte(0)
	if s.Dropless != 0 {
		mode = oidEnter
	}
	return api.OIDAnswer{Buffer: hex.EncodeToString(append(b, mode))}, nil
}
