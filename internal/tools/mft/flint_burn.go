package mft

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// errNo says that a question was answered with no.
var errNo = errors.New("aborted by user: nothing was changed")

func (x *flint) burn(args []string) error {
	if err := none("burn", args, 0); err != nil {
		return err
	}
	m, _, err := x.image()
	if err != nil {
		return err
	}
	d, err := x.flash()
	if err != nil {
		return err
	}
	return x.burnImage(m, d)
}

// burnImage writes an image to the flash of a device, if it is one for it and the user agrees.
func (x *flint) burnImage(m firmware.Image, d *flashed) error {
	if err := burnable(&m, d); err != nil {
		return err
	}
	if m.PSID != d.image.PSID && !x.changePSID {
		return tool.Usagef("PSID mismatch. The PSID on flash (%s) differs from the PSID in the given image (%s); "+
			"allowed: an image for this board, or --allow_psid_change", d.image.PSID, m.PSID)
	}
	if !x.imagesGUIDs {
		m.GUID, m.MAC = d.image.GUID, d.image.MAC
	}
	if err := x.bases(&m); err != nil {
		return err
	}
	x.say("\n    Current FW version on flash:  %v\n    New FW version:               %v\n\n", d.image.Version, m.Version)
	if question := doubts(&m, d); question != "" {
		if err := x.ask(question); err != nil {
			return err
		}
	}
	if err := x.write(d, &m, "Burning FW image"); err != nil {
		return err
	}
	x.say("-I- To load new FW run mlxfwreset -d %s reset, or restart the driver.\n", d.name)
	return nil
}

// doubts returns what the user is asked before an image is burned; nothing for a newer one.
func doubts(m *firmware.Image, d *flashed) string {
	switch {
	case m.PSID != d.image.PSID:
		return fmt.Sprintf("    You are about to replace current PSID on flash - %q with a different PSID - %q.\n"+
			"    Note: It is highly recommended not to change the PSID.\n\n Do you want to continue ? (y/n) [n] : ", d.image.PSID, m.PSID)
	case d.burned && m.Version == d.image.Version:
		return "    Note: The new FW version is the same as the current FW version on flash.\n\n Do you want to continue ? (y/n) [n] : "
	case d.image.Version.After(m.Version):
		return "    Note: The new FW version is older than the current FW version on flash.\n\n Do you want to continue ? (y/n) [n] : "
	}
	return ""
}

// setGUIDs implements sg, for a device or the file of an image.
func (x *flint) setGUIDs(args []string) error {
	if err := none("sg", args, 0); err != nil {
		return err
	}
	if x.guid == "" && x.mac == "" {
		return tool.Usagef("sg needs -guid, -mac or both: the bases of the ports' GUIDs and MACs")
	}
	m, d, err := x.either()
	if err != nil {
		return err
	}
	if err := x.bases(&m); err != nil {
		return err
	}
	what := x.file
	if d != nil {
		what = "the device"
	}
	question := fmt.Sprintf("-W- GUIDs are changed: base GUID %s, base MAC %s of %s.\n\n Do you want to continue ? (y/n) [n] : ", m.GUIDText(),
		m.MACText(), what)
	if err := x.ask(question); err != nil {
		return err
	}
	if d != nil {
		return x.write(d, &m, "Setting GUIDs")
	}
	return wholefile.Write(x.file, m.Encode())
}

// bases sets those that the options name.
func (x *flint) bases(m *firmware.Image) error {
	if x.guid != "" {
		if err := firmware.ParseGUID(x.guid, &m.GUID); err != nil {
			return tool.Usagef("-guid: %v", err)
		}
	}
	if x.mac != "" {
		if err := firmware.ParseMAC(x.mac, &m.MAC); err != nil {
			return tool.Usagef("-mac: %v", err)
		}
	}
	return nil
}

// write writes an image to the flash, and reads it again.
func (x *flint) write(d *flashed, m *firmware.Image, what string) error {
	if err := x.client.Burn(x.ctx, d.adapter, m); err != nil {
		return fmt.Errorf("%s failed, and the flash holds what it did: %w", what, err)
	}
	x.say("%-30s - OK\n", what)
	now, err := flashOf(x.ctx, x.client, d.name)
	if err != nil {
		return err
	}
	if now.problem != nil || !bytes.Equal(now.image.Encode(), m.Encode()) {
		return fmt.Errorf("verifying failed: the flash holds another image (%w)", errors.Join(errors.New("not what was written"), now.problem))
	}
	x.say("%-30s - OK\n", "Verifying")
	return nil
}

func (x *flint) say(format string, args ...any) {
	if !x.silent {
		fmt.Fprintf(x.env.Stdout, format, args...)
	}
}

// ask asks for a confirmation. No answer means no.
func (x *flint) ask(question string) error {
	yes, err := confirm(x.ctx, x.env, question, x.yes, x.no)
	if err == nil && !yes {
		return errNo
	}
	return err
}

// bare is a MAC without its separators.
func bare(mac string) string {
	return strings.ToLower(strings.NewReplacer(":", "", "-", "").Replace(mac))
}
