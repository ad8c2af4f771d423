package mlxtool

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/internal/commandline"
)

// endpoints shows the end points that IPoIB interfaces know (WinOF 5.50, 5.5.2.8). The flags select
// tables, all without flags; they may be in any order, before or after the interface's name.
func (r *run) endpoints() (report, error) {
	local, multicast, remote := false, false, false
	table := func(p *bool, name string) commandline.Option {
		return commandline.Option{Names: []string{name}, Set: func(string) error { *p = true; return nil }}
	}
	options := []commandline.Option{table(&local, "-l"), table(&multicast, "-m"), table(&remote, "-r")}
	syntax := commandline.Syntax{Fold: true, Arguments: true, Options: options}
	line, err := syntax.Parse(r.args)
	if err != nil {
		return nil, r.usagef("%s", err)
	}
	names := line.Arguments
	if len(names) > 1 {
		return nil, r.usagef("unexpected argument %q", names[1])
	}
	all := !local && !multicast && !remote
	list, err := r.client.Endpoints(r.ctx, strings.Join(names, ""))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return report{{Label: "End points", Name: strings.Join(names, ""), Fields: []string{"IP address"}, Empty: "no IPoIB interface"}},
			nil
	}
	var out report
	for i := range list {
		e := &list[i]
		if local || all {
			out = append(out, localEndpoints(e))
		}
		if multicast || all {
			out = append(out, multicastEndpoints(e))
		}
		if remote || all {
			out = append(out, remoteEndpoints(e))
		}
	}
	return out, nil
}

func localEndpoints(e *api.Endpoints) table {
	t := table{Label: "Local end points", Name: e.Connection, Fields: []string{"IP address", "Configured", "Age"},
		Empty: "no local end points"}
	for _, x := range e.Local {
		t.add(x.Address, x.Configured, x.Age)
	}
	return t
}

func multicastEndpoints(e *api.Endpoints) table {
	t := table{Label: "Multicast end points", Name: e.Connection, Fields: []string{"MGID", "MLID", "Membership", "State", "Q_Key", "MTU",
		"SL"}, Empty: "no multicast end points"}
	for _, x := range e.Multicast {
		member := "full"
		if x.SendOnly {
			member = "send only"
		}
		if x.MLID == 0 {
			t.add(x.MGID, notKnown, member, x.State, notKnown, notKnown, notKnown)
			continue
		}
		t.add(x.MGID, fmt.Sprintf("0x%04x", x.MLID), member, x.State, fmt.Sprintf("0x%08x", x.QKey), x.MTU, x.SL)
	}
	return t
}

func remoteEndpoints(e *api.Endpoints) table {
	t := table{Label: "Remote end points", Name: e.Connection, Fields: []string{"IP address", "QPN", "GID", "LID", "State", "Unused s"},
		Empty: "no remote end points"}
	for _, x := range e.Remote {
		qpn, gid, lid := notKnown, notKnown, notKnown
		if x.Link != "" {
			qpn, gid = fmt.Sprintf("0x%06x", x.QPN), x.GID
		}
		if x.LID != 0 {
			lid = x.LID
		}
		t.add(x.Address, qpn, gid, lid, x.State, x.Unused)
	}
	return t
}
