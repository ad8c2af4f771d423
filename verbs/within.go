package verbs

import (
	"os"

	"github.com/softvpi/softvpi/internal/device"
)

// Within returns a session with adapters that this process already runs; it is how the driver uses its own
// adapters. Closing the session leaves the adapters running.
func Within(dh *device.Host, name string) (*Host, error) {
	client, err := dh.NewClient(device.ClientConfig{Name: name, PID: os.Getpid(), UID: os.Getuid()})
	if err != nil {
		return nil, wrap("open", err)
	}
	return newHost(Embedded, client, nil), nil
}
