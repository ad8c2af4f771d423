// Package sminfo holds two small tools: sminfo shows or sets a subnet manager's SMInfo, ibaddr shows the
// addresses of a port.
package sminfo

import (
	"context"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

var states = []string{"SMINFO_NOTACT", "SMINFO_DISCOVER", "SMINFO_STANDBY", "SMINFO_MASTER"}

func stateName(s mad.SMState) string {
	if int(s) < len(states) {
		return states[s]
	}
	return "???"
}

// Main runs sminfo.
func Main(ctx context.Context, env tool.Env) int {
	info := mad.SMInfo{State: mad.SMStandby}
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<sm_lid|sm_dr_path> [modifier]",
		About: "Shows what a subnet manager reports about itself; without an address, that of this port. With a modifier other than 0 it\n" +
			"sends the manager an SMInfo with that modifier (1 handover, 2 acknowledge, 3 disable, 4 standby, 5 discover).",
		Options: []ibdiag.Option{
			ibdiag.Number((*uint8)(&info.State), "state", 's', "<0-3>", "state to send", 0, 3),
			ibdiag.Number(&info.Priority, "priority", 'p', "<0-15>", "priority to send", 0, 15),
			ibdiag.Number(&info.ActCount, "activity", 'a', "<val>", "activity count to send", 0, 1<<32-1),
		},
		Without: "sK",
		Most:    2,
		Work: func(s *ibdiag.Session, args []string) error {
			to, err := manager(s, args)
			if err != nil {
				return err
			}
			var modifier uint64
			if len(args) > 1 {
				if modifier, err = ibdiag.ParseNumber("the modifier", args[1], 0, 1<<32-1); err != nil {
					return err
				}
			}
			return show(s, to, uint32(modifier), &info)
		},
	})
}

func manager(s *ibdiag.Session, args []string) (ibdiag.Route, error) {
	if len(args) > 0 {
		return s.Resolve(args[0])
	}
	return s.SM()
}

func show(s *ibdiag.Session, to ibdiag.Route, modifier uint32, send *mad.SMInfo) error {
	var a *mad.SMP
	var err error
	if modifier != 0 {
		a, err = s.Set(to, mad.AttrSMInfo, modifier, send.Append(nil))
	} else {
		a, err = s.Get(to, mad.AttrSMInfo, 0)
	}
	if err != nil {
		if s.Context.Err() != nil {
			return err
		}
		return ibdiag.Failf("query")
	}
	i, err := mad.ParseSMInfo(a.Data[:])
	if err != nil {
		return err
	}
	s.Printf("sminfo: sm lid %d sm guid 0x%x, activity count %d priority %d state %d %s\n", to.LID, i.GUID, i.ActCount, i.Priority, i.State,
		stateName(i.State))
	return nil
}

// Addresses runs ibaddr.
func Addresses(ctx context.Context, env tool.Env) int {
	var gid, lid, decimal bool
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "[<lid|dr_path|guid>] [<portnum>]",
		About:     "Shows the GID and the LIDs of a port; without an address, those of this port.",
		Examples:  []string{"", "32", "-G 0x8f1040023", "-l 32", "-L 32", "-g 32"},
		Options: []ibdiag.Option{
			ibdiag.Flag(&gid, "gid_show", 'g', "show the GID only"),
			ibdiag.Flag(&lid, "lid_show", 'l', "show the LIDs only"),
			ibdiag.Flag(&decimal, "Lid_show", 'L', "show the LIDs only, in decimal"),
		},
		Without: "KL",
		Most:    2,
		Work: func(s *ibdiag.Session, args []string) error {
			if !gid && !lid && !decimal {
				gid, lid = true, true
			}
			form := ""
			switch {
			case decimal:
				form = "LID start %d end %d"
			case lid:
				form = "LID start 0x%x end 0x%x"
			}
			return addresses(s, args, gid, form)
		},
	})
}

func addresses(s *ibdiag.Session, args []string, gid bool, lidForm string) error {
	to, port := s.Self(), uint64(s.Port.Device().PortNum)
	var err error
	if len(args) > 0 {
		port = 0
		if to, err = s.Resolve(args[0]); err != nil {
			return err
		}
	}
	if len(args) > 1 {
		if port, err = ibdiag.ParseNumber("the port", args[1], 0, 254); err != nil {
			return err
		}
	}
	n, err := s.NodeInfo(to)
	if err != nil {
		return unresolved(s, err)
	}
	p, err := s.PortInfo(to, uint32(port))
	if err != nil {
		return unresolved(s, err)
	}
	if gid {
		s.Printf("GID %s ", ibdiag.GIDString(ibdiag.PortGID(p.GIDPrefix, n.PortGUID)))
	}
	if lidForm != "" {
		s.Printf(lidForm, int(p.LID), int(p.LID)+(1<<p.LMC)-1)
	}
	s.Printf("\n")
	return nil
}

func unresolved(s *ibdiag.Session, err error) error {
	if s.Context.Err() != nil {
		return err
	}
	return ibdiag.Failf("can't resolve requested address")
}
