package client

import (
	"context"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// TestFirmwareOfOlderDriver: a driver of a version before 2.22 is not asked for its devices' firmware, which it does not know. This
// client has no stream that it could ask by.
func TestFirmwareOfOlderDriver(t *testing.T) {
	var c Client
	c.about.Major, c.about.Minor = proto.Major, firmwareMinor-1
	if f, err := c.Firmware(context.Background(), 0); err != nil || f != (command.Firmware{}) {
		t.Errorf("firmware %q, %v; want none", f, err)
	}
}
