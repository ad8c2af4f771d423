package smpquery

import (
	"context"
	"errors"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/mad"
)

// Dump runs smpdump.
func Dump(ctx context.Context, env tool.Env) int {
	var text bool
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<dlid|dr_path> <attr> [mod]",
		About:     "Asks a port for any attribute of subnet management and shows its bytes.",
		Examples: []string{
			"-D 0,1,2,3,5 16      # NodeDescription", "-D 0,1,2 0x15 2      # PortInfo of port 2",
			"3 0x15 2             # PortInfo of LID 3, port 2", "0xa0 0x11            # NodeInfo",
		},
		Options: []ibdiag.Option{ibdiag.Flag(&text, "string", 's', "show the attribute as text")},
		Without: "GKs",
		Least:   2, Most: 3,
		Work: func(s *ibdiag.Session, args []string) error {
			to, err := s.Resolve(args[0])
			if err != nil {
				return err
			}
			attribute, err := ibdiag.ParseNumber("the attribute", args[1], 0, 0xffff)
			if err != nil {
				return err
			}
			var modifier uint64
			if len(args) > 2 {
				if modifier, err = ibdiag.ParseNumber("the attribute modifier", args[2], 0, 1<<32-1); err != nil {
					return err
				}
			}
			return dump(s, to, uint16(attribute), uint32(modifier), text)
		},
	})
}

// dump shows the answer, whatever its status.
func dump(s *ibdiag.Session, to ibdiag.Route, attribute uint16, modifier uint32, text bool) error {
	a, err := s.Get(to, attribute, modifier)
	var status *umad.StatusError
	if err != nil && !errors.As(err, &status) {
		return err
	}
	if text {
		s.Printf("%s\n", ibdiag.Printable(mad.NodeDescription(a.Data).String()))
	} else {
		for i := 0; i < len(a.Data); i += 2 {
			separator := " "
			if i%16 == 14 {
				separator = "\n"
			}
			s.Printf("%04x%s", a.Data[i:i+2], separator)
		}
	}
	if a.Status != 0 { // including the direction bit
		s.Printf("SMP status: 0x%x\n", a.Status)
	}
	return nil
}
