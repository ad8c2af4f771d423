package mft

import (
	"fmt"
	"io"

	"github.com/softvpi/softvpi/internal/firmware"
)

// queried is what flint query shows.
type queried struct {
	Device      string `json:"device,omitempty"`
	Type        string `json:"image_type"`
	Version     string `json:"fw_version"`
	Running     string `json:"fw_version_running,omitempty"` // if the flash has another
	Released    string `json:"fw_release_date"`
	ROM         string `json:"rom_info"`
	Description string `json:"description"`
	Name        string `json:"name"`
	DeviceID    int    `json:"device_id"`
	GUID        string `json:"base_guid"`
	GUIDs       int    `json:"guids_number"`
	MAC         string `json:"base_mac"`
	MACs        int    `json:"macs_number"`
	PSID        string `json:"psid"`
	Pending     bool   `json:"pending"` // the device runs another image until its reset
}

// portsOfBoard is how many ports an image is for.
const portsOfBoard = 2

func (x *flint) query(args []string) error {
	if len(args) == 1 && args[0] == "full" {
		args = nil
	}
	if err := none("query", args, 0); err != nil {
		return err
	}
	m, d, err := x.either()
	if err != nil {
		return err
	}
	q := describeImage(&m)
	if d != nil {
		q.ofDevice(d)
	}
	if x.json {
		return writeJSON(x.env.Stdout, q)
	}
	q.show(x.env.Stdout)
	if d != nil && d.problem != nil {
		fmt.Fprintf(x.env.Stdout, "-W- The flash holds no image, and the device runs that of the factory: %v\n", d.problem)
	}
	return nil
}

func describeImage(m *firmware.Image) *queried {
	return &queried{
		Type: "SVF", Version: m.Version.String(), Released: m.Released, ROM: "N/A", Description: m.Description, Name: m.Name,
		DeviceID: m.Generation.PartID(), GUID: m.GUIDText(), GUIDs: portsOfBoard, MAC: m.MACText(), MACs: portsOfBoard, PSID: m.PSID,
	}
}

// ofDevice adds what only devices have. Where the flash has no base, it is that of the first port.
func (q *queried) ofDevice(d *flashed) {
	a := d.adapter
	q.Device, q.GUIDs, q.MACs = d.name, len(d.of.Ports), len(d.of.Ports)
	if running := a.Firmware; running.Version != q.Version {
		q.Running = running.Version
	}
	q.Pending = a.Firmware.Digest != fmt.Sprintf("%x", d.image.Digest())
	if d.image.GUID == 0 {
		q.GUID = fmt.Sprintf("%016x", a.GUID)
	}
	if d.image.MAC == [6]byte{} && a.MAC != "" {
		q.MAC = bare(a.MAC)
	}
}

func (q *queried) show(w io.Writer) {
	row := func(name string, value any) { fmt.Fprintf(w, "%-23s%v\n", name+":", value) }
	row("Image type", q.Type)
	row("FW Version", q.Version)
	if q.Running != "" {
		row("FW Version(Running)", q.Running)
	}
	row("FW Release Date", q.Released)
	row("Rom Info", q.ROM)
	row("Device ID", q.DeviceID)
	row("Name", q.Name)
	row("Board Description", q.Description)
	row("Description", fmt.Sprintf("%-19s%s", "UID", "GuidsNumber"))
	row("Base GUID", fmt.Sprintf("%-19s%d", q.GUID, q.GUIDs))
	row("Base MAC", fmt.Sprintf("%-19s%d", q.MAC, q.MACs))
	row("PSID", q.PSID)
	if q.Pending {
		fmt.Fprintf(w, "-I- The device runs another image until its reset: mlxfwreset -d %s reset\n", q.Device)
	}
}
