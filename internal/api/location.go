package api

import "fmt"

// Location is where a device is on the PCI bus, by which tools identify it. A software device has one too:
// it follows from the number of the registry keys of its first port, and so stays with the device.
type Location struct {
	Bus      int `json:"bus"`
	Device   int `json:"device"`
	Function int `json:"function"`
}

// LocationOf returns the location of the device whose first port's registry keys have that number. Bus 0 is
// the machine's own.
func LocationOf(number int) Location {
	const buses, devices = 255, 32
	return Location{Bus: 1 + number%buses, Device: number / buses % devices, Function: number / (buses * devices)}
}

// Location returns where the adapter's device is.
func (a *AdapterStatus) Location() Location { return LocationOf(a.DeviceNumber) }

// String returns the location as in the tools' file names: 4_0_0.
func (l Location) String() string { return fmt.Sprintf("%d_%d_%d", l.Bus, l.Device, l.Function) }

// Text returns the location as the device manager shows it.
func (l Location) Text() string {
	return fmt.Sprintf("PCI bus %d, device %d, function %d", l.Bus, l.Device, l.Function)
}

// Address returns the location as the firmware tools show it (mst status -v): 04:00.0, in hexadecimal.
func (l Location) Address() string { return fmt.Sprintf("%02x:%02x.%x", l.Bus, l.Device, l.Function) }
