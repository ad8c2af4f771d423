package mft

import (
	"context"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const flintSynopsis = `usage: flint -d DEVICE [options] query|q | verify|v | ri FILE | dc [FILE] | swreset
       flint -d DEVICE -i FILE [options] burn|b
       flint -d DEVICE [-guid GUID] [-mac MAC] [options] sg
       flint -i FILE [options] query|q | verify|v | dc [FILE] | sg
Shows, burns and reads the firmware of devices. It is an image with their personality (PSID, name, bases of GUIDs and MACs)
and the defaults of mlxconfig's parameters. What a card's firmware does is done by the driver's engine, whose version images
name. What is burned acts when the device is reset: mlxfwreset -d DEVICE reset, or a restart of its adapters.`

// flintCommands are those of flint, with their other names, and why those are refused for which devices have nothing.
var flintCommands = []struct {
	name, short, missing string
	do                   func(*flint, []string) error
}{
	{name: "query", short: "q", do: (*flint).query},
	{name: "verify", short: "v", do: (*flint).verify},
	{name: "burn", short: "b", do: (*flint).burn},
	{name: "ri", do: (*flint).read},
	{name: "dc", do: (*flint).dump},
	{name: "sg", do: (*flint).setGUIDs},
	{name: "swreset", do: (*flint).reset},
	{name: "bb", missing: "the flash has no blocks"},
	{name: "erase", short: "e", missing: "the flash has no blocks"},
	{name: "rw", missing: "the flash has no blocks"},
	{name: "ww", missing: "the flash has no blocks"},
	{name: "rb", missing: "the flash has no blocks"},
	{name: "wb", missing: "the flash has no blocks"},
	{name: "hw", missing: "there is no flash chip"},
	{name: "brom", missing: "there is no expansion ROM"},
	{name: "drom", missing: "there is no expansion ROM"},
	{name: "rrom", missing: "there is no expansion ROM"},
	{name: "set_key", missing: "access is by the rights of the driver's socket"},
}

// flint is a run of the tool.
type flint struct {
	ctx                     context.Context
	env                     tool.Env
	client                  *api.Client
	device                  string
	file                    string
	guid, mac, socket       string
	yes, no, silent, json   bool
	changePSID, imagesGUIDs bool
}

// Flint runs flint.
func Flint(ctx context.Context, env tool.Env) int {
	x := &flint{ctx: ctx, env: env}
	f := tool.NewFlags(env, flintSynopsis)
	for _, n := range []string{"d", "dev", "device"} {
		f.StringVar(&x.device, n, "", "`device` as mst status names it")
	}
	for _, n := range []string{"i", "image"} {
		f.StringVar(&x.file, n, "", "`file` of an image, that mlxburn or ri has written")
	}
	for _, n := range []string{"y", "yes"} {
		f.BoolVar(&x.yes, n, false, "answer yes to questions")
	}
	f.BoolVar(&x.no, "no", false, "answer no to questions")
	for _, n := range []string{"s", "silent"} {
		f.BoolVar(&x.silent, n, false, "print nothing but errors while burning")
	}
	f.StringVar(&x.guid, "guid", "", "`base` of the ports' GUIDs, 16 hexadecimal digits; 0: those that they have otherwise")
	f.StringVar(&x.mac, "mac", "", "`base` of the ports' MACs, 12 hexadecimal digits; 0: those that they have otherwise")
	f.BoolVar(&x.changePSID, "allow_psid_change", false, "burn an image for another kind of board")
	f.BoolVar(&x.imagesGUIDs, "use_image_guids", false, "burn the image's bases too; by default the device keeps its own")
	f.StringVar(&x.socket, "socket", "", "`path` of the driver's socket")
	f.BoolVar(&x.json, "json", false, "query: print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	var args []string
	for i := 1; i < f.NArg(); i++ {
		args = append(args, f.Arg(i))
	}
	x.client = api.NewClient(x.socket)
	return env.End(ctx, x.do(strings.ToLower(f.Arg(0)), args))
}

func (x *flint) do(command string, args []string) error {
	var names []string
	for _, c := range flintCommands {
		switch {
		case command != "" && (command == c.name || command == c.short) && c.missing != "":
			return fmt.Errorf("%w: %s, because %s", tool.ErrUnsupported, c.name, c.missing)
		case command != "" && (command == c.name || command == c.short):
			if x.yes && x.no {
				return tool.Usagef("-y and --no exclude each other")
			}
			return c.do(x, args)
		case c.missing == "":
			names = append(names, c.name)
		}
	}
	return tool.NoVerb("flint", command, strings.Join(names, ", "))
}

// none refuses arguments behind a command that has fewer.
func none(command string, args []string, most int) error {
	if len(args) > most {
		return tool.Usagef("unexpected argument %q behind %s", args[most], command)
	}
	return nil
}

// flashed is a device with what its flash holds.
type flashed struct {
	device
	image   firmware.Image
	problem error // the flash holds something else, and image is the factory's
	burned  bool  // image was burned
}

// flash reads the flash of the device that -d names.
func (x *flint) flash() (*flashed, error) {
	if x.device == "" {
		return nil, errDevice
	}
	return flashOf(x.ctx, x.client, x.device)
}

func flashOf(ctx context.Context, c *api.Client, name string) (*flashed, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	list, err := pick(devices(s), name)
	if err != nil {
		return nil, err
	}
	reg, err := c.LoadRegistry(ctx)
	if err != nil {
		return nil, err
	}
	d := &flashed{device: list[0]}
	d.image, d.problem = reg.Firmware(d.adapter.Identity())
	k, _ := reg.Key(d.adapter.Identity().Flash())
	d.burned = d.problem == nil && len(k.Values) > 0
	return d, nil
}

// image reads the file that -i names.
func (x *flint) image() (firmware.Image, []byte, error) { return readImage("-i", x.file) }

func readImage(option, file string) (firmware.Image, []byte, error) {
	if file == "" {
		return firmware.Image{}, nil, tool.Usagef("%s is missing; it is the file of an image", option)
	}
	b, err := inputfile.Read(file, firmware.MaxSize)
	if err != nil {
		return firmware.Image{}, nil, &tool.UsageError{Text: fmt.Sprintf("%s: %v", option, err)}
	}
	m, err := firmware.Decode(b)
	if err != nil {
		return firmware.Image{}, nil, &tool.UsageError{Text: fmt.Sprintf("%s %s: %v", option, file, err)}
	}
	return m, b, nil
}

// either returns the image that -i names, or else that of -d's flash.
func (x *flint) either() (m firmware.Image, d *flashed, err error) {
	if x.file != "" && x.device != "" {
		return m, nil, tool.Usagef("-d and -i exclude each other here")
	}
	if x.file != "" {
		m, _, err = x.image()
		return m, nil, err
	}
	if x.device == "" {
		return m, nil, tool.Usagef("-d or -i is missing: the device, as mst status names it, or the file of an image")
	}
	if d, err = x.flash(); err != nil {
		return m, nil, err
	}
	return d.image, d, nil
}

// read implements ri: it writes the image of the flash to a file.
func (x *flint) read(args []string) error {
	if err := none("ri", args, 1); err != nil {
		return err
	}
	if len(args) == 0 {
		return tool.Usagef("ri needs the name of the file that it writes")
	}
	d, err := x.flash()
	if err != nil {
		return err
	}
	return wholefile.Write(args[0], d.image.Encode())
}

// dump implements dc: it writes the configuration, which mlxburn -conf reads, to a file or the standard output.
func (x *flint) dump(args []string) error {
	if err := none("dc", args, 1); err != nil {
		return err
	}
	m, _, err := x.either()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		_, err = x.env.Stdout.Write(m.INI())
		return err
	}
	return wholefile.Write(args[0], m.INI())
}

// verify checks the checksum and the records of an image.
func (x *flint) verify(args []string) error {
	if err := none("verify", args, 0); err != nil {
		return err
	}
	m, d, err := x.either()
	if err != nil {
		return err
	}
	if d != nil && d.problem != nil {
		return fmt.Errorf("FW image verification failed: %w", d.problem)
	}
	fmt.Fprintf(x.env.Stdout, "\n     SVF failsafe image\n\n")
	for _, p := range firmware.Parts(m.Encode()) {
		fmt.Fprintf(x.env.Stdout, "     /0x%08x-0x%08x (0x%06x)/ (%s) - OK\n", p.At, p.At+p.Size-1, p.Size, p.Name)
	}
	fmt.Fprintf(x.env.Stdout, "\n-I- FW image verification succeeded. Image is bootable.\n\n")
	return nil
}

// reset restarts the device, as mlxfwreset does at its default level.
func (x *flint) reset(args []string) error {
	if err := none("swreset", args, 0); err != nil {
		return err
	}
	d, err := x.flash()
	if err != nil {
		return err
	}
	if err := restart(x.ctx, x.client, d.of.Ports); err != nil {
		return err
	}
	fmt.Fprintln(x.env.Stdout, "-I- FW was loaded successfully.")
	return nil
}

// burnable says why an image is none for a device.
func burnable(m *firmware.Image, d *flashed) error {
	if m.Generation != d.adapter.Class() {
		return tool.Usagef("the image is for device %d, and %s is a %d", m.Generation.PartID(), d.name, d.adapter.Class().PartID())
	}
	if m.Version.After(firmware.Engine) {
		return tool.Usagef("the image is for engine %v; this driver's is %v", m.Version, firmware.Engine)
	}
	return nil
}
