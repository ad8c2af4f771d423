package mft

import (
	"context"
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const burnSynopsis = `usage: mlxburn -fw FILE.mlx [-conf FILE.ini] -wrimage FILE.bin [options]
       mlxburn -d DEVICE -fw FILE.mlx [-conf FILE.ini] [options]
       mlxburn -d DEVICE -img_file FILE.bin [options]
       mlxburn -d DEVICE -query
Makes images of firmware, writes them to files or burns them. -fw is firmware to start from: any image, as flint -d DEVICE
ri FILE.mlx reads it. -conf is a configuration, as flint dc writes it, whose values replace those of the firmware; without
it an image for a device has the device's. flint shows, verifies and burns images too.`

// maxINI limits the bytes of a configuration.
const maxINI = 64 << 10

// Burn runs mlxburn.
func Burn(ctx context.Context, env tool.Env) int {
	x := &flint{ctx: ctx, env: env}
	f := tool.NewFlags(env, burnSynopsis)
	for _, n := range []string{"d", "dev"} {
		f.StringVar(&x.device, n, "", "`device` as mst status names it")
	}
	base := f.String("fw", "", "`file` of the firmware to start from")
	conf := f.String("conf", "", "`file` of a configuration")
	out := f.String("wrimage", "", "`file` to write the image to")
	f.StringVar(&x.file, "img_file", "", "`file` of an image to burn as it is")
	query := f.Bool("query", false, "show the firmware of the device")
	for _, n := range []string{"y", "yes"} {
		f.BoolVar(&x.yes, n, false, "answer yes to questions")
	}
	f.BoolVar(&x.no, "no", false, "answer no to questions")
	f.BoolVar(&x.changePSID, "allow_psid_change", false, "burn an image for another kind of board")
	f.StringVar(&x.socket, "socket", "", "`path` of the driver's socket")
	f.BoolVar(&x.json, "json", false, "-query: print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	if err := f.NoArguments(); err != nil {
		return f.Refuse(err)
	}
	x.client = api.NewClient(x.socket)
	if *query {
		x.file = ""
		return env.End(ctx, x.query(nil))
	}
	return env.End(ctx, x.make(*base, *conf, *out))
}

// make makes an image and writes or burns it.
func (x *flint) make(base, conf, out string) error {
	switch {
	case x.file != "" && (base != "" || conf != "" || out != ""):
		return tool.Usagef("--img_file excludes --fw, --conf and --wrimage")
	case x.file != "":
		return x.burn(nil)
	case base == "":
		return tool.Usagef("--fw is missing: the firmware to start from, which flint -d DEVICE ri FILE.mlx reads; or --img_file")
	case out == "" && x.device == "":
		return tool.Usagef("--wrimage or -d is missing: the file to write, or the device to burn")
	case out != "" && x.device != "":
		return tool.Usagef("--wrimage and -d exclude each other: an image is written or burned")
	}
	m, _, err := readImage("--fw", base)
	if err != nil {
		return err
	}
	if conf != "" {
		if err := apply(&m, conf); err != nil {
			return err
		}
	}
	if out != "" {
		return x.writeImage(&m, out)
	}
	d, err := x.flash()
	if err != nil {
		return err
	}
	if conf == "" {
		m.PSID, m.Name, m.Description, m.Parameters = d.image.PSID, d.image.Name, d.image.Description, d.image.Parameters
	}
	return x.burnImage(m, d)
}

// apply changes an image as a file of configuration says.
func apply(m *firmware.Image, conf string) error {
	b, err := inputfile.Read(conf, maxINI)
	if err == nil {
		err = m.ReadINI(string(b))
	}
	if err != nil {
		return &tool.UsageError{Text: fmt.Sprintf("--conf %s: %v", conf, err)}
	}
	return nil
}

func (x *flint) writeImage(m *firmware.Image, out string) error {
	err := wholefile.Write(out, m.Encode())
	if err == nil {
		fmt.Fprintf(x.env.Stdout, "-I- Generating image ...\n-I- Image file %s: PSID %s, FW version %v\n", out, m.PSID, m.Version)
	}
	return err
}
