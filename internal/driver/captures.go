package driver

import (
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

// CaptureRequest says what to capture.
type CaptureRequest = api.CaptureRequest

// rssMonitoring is the key that allows an adapter its packet buffer (WinOF 5.50, 4.9.4.4.1).
const rssMonitoring = "RssMonitoringEnabled"

// errMonitoringOff says that the adapter's key does not allow it.
var errMonitoringOff = errors.New(rssMonitoring + " is 0: set it to 1 and restart the adapter first")

// captureDriver is what captures need of the driver.
type captureDriver struct{ d *Driver }

// Find implements captures.Driver.
func (c captureDriver) Find(name string) (uint32, error) { return c.d.find(name) }

// Elsewhere implements captures.Driver.
func (c captureDriver) Elsewhere(adapter string) error {
	if team, carrier, ok := c.d.Roster.CarriedBy(adapter); ok {
		return api.Wrong("adapter", fmt.Sprintf("%q, whose wire is in team %q", adapter, team), fmt.Sprintf("%q, which carries the team", carrier))
	}
	return nil
}

// MayBuffer implements captures.Driver.
func (c captureDriver) MayBuffer(adapter string) error {
	list, err := c.d.Settings(adapter)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Name == rssMonitoring && list[i].Value == "1" {
			return nil
		}
	}
	return errMonitoringOff
}

// UDPPort implements captures.Driver.
func (c captureDriver) UDPPort(i uint32) uint16 {
	c.d.settings.RLock()
	defer c.d.settings.RUnlock()
	return c.d.keys(int(i)).UDPPort
}
