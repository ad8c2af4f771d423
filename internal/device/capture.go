package device

import (
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/capture"
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
	return nil
}

func (a *adapter) setTaps(taps []*capture.Tap) {
	a.links.SetTaps(taps)
	a.reroute()
}
