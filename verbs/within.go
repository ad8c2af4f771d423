package verbs

import (
	"os"

	"github.com/softvpi/softvpi/internal/device"
)

// Within returns a session with adapters that this process already runs; it is how the driver uses its own
// adapters. Closing the session leaves the adapters running.
func Within(dh *device.Host, name string) (*Host, error) {
	h, err := within(dh, name, nil, nil)
	return h, wrap("open", err)
}

// WithinFunction is Within for a virtual function, by its index, which is all that the session sees.
func WithinFunction(dh *device.Host, name string, function uint32) (*Host, error) {
	h, err := within(dh, name, nil, &function)
	return h, wrap("open", err)
}

// within returns a session with the adapters of dh; own is dh if it ends with the session, and
// function a virtual function that it sees alone.
func within(dh *device.Host, name string, own *device.Host, function *uint32) (*Host, error) {
	p := newPaging(dh.Wake)
	client, err := dh.NewClient(device.ClientConfig{
		Name: name, PID: os.Getpid(), UID: os.Getuid(), OnDemand: p.reach, OfDriver: own == nil, Function: function,
	})
	if err != nil {
		return nil, err
	}
	h := newHost(Embedded, client, own)
	h.paging = p
	return h, nil
}
