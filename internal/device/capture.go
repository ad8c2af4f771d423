package device

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/transport"
)

// maxTaps limits how many captures of one adapter run at a time: each copies every packet.
const maxTaps = 4

// StartCapture passes every packet that the adapter's port sends or receives to the tap, until
// StopCapture. Connections on the local path move to the wire at their next message, so that there are
// packets to see. The error is Exhausted if the maximum number of captures is running.
func (h *Host) StartCapture(index uint32, t *capture.Tap) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	return a.startCapture(t)
}

// StartQPCapture is StartCapture with notes of what the adapter does with the packets of a queue pair, for transport.ReadPacketNote:
// the note of a packet that is sent is before it, and that of one that has arrived behind it. The error is NotFound if the
// adapter has no such queue pair, or one of raw packets.
func (h *Host) StartQPCapture(index uint32, t *capture.Tap, qpn uint32) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	if q := a.engine.QP(qpn); q == nil || q.Type() == command.RawPacket {
		return command.Errorf(command.NotFound, "queue pair %d: adapter %q has no such queue pair whose packets are RDMA's", qpn, a.name)
	}
	if err := a.startCapture(t); err != nil {
		return err
	}
	a.watched = append(a.watched, watched{qpn, t})
	a.watch()
	return nil
}

// watched is a queue pair whose packets a capture has notes of.
type watched struct {
	qpn uint32
	tap *capture.Tap
}

// watch has the engine note the packets of the watched queue pairs.
func (a *adapter) watch() {
	var list []transport.Watch
	for _, w := range a.watched {
		var b []byte
		list = append(list, transport.Watch{QPN: w.qpn, Tell: func(n *transport.PacketNote) {
			b = n.Append(b[:0])
			w.tap.Note(time.Now(), b)
		}})
	}
	a.engine.WatchPackets(list)
}

func (a *adapter) startCapture(t *capture.Tap) error {
	if len(a.links.Taps()) >= maxTaps {
		return command.Errorf(command.Exhausted, "%d captures of adapter %q run already, the most at a time", len(a.links.Taps()), a.name)
	}
	a.setTaps(append(slices.Clone(a.links.Taps()), t))
	return nil
}

// StopCapture ends what StartCapture began; a tap that the adapter does not have is ignored. What the tap
// has captured can still be read.
func (h *Host) StopCapture(index uint32, t *capture.Tap) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	a.setTaps(slices.DeleteFunc(slices.Clone(a.links.Taps()), func(o *capture.Tap) bool { return o == t }))
	a.watched = slices.DeleteFunc(a.watched, func(w watched) bool { return w.tap == t })
	a.watch()
	return nil
}

func (a *adapter) setTaps(taps []*capture.Tap) {
	a.links.SetTaps(taps)
	a.reroute()
}
