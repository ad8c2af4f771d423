package teams

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

// interfaces is the kind of teams of IPoIB interfaces (WinOF 5.50, 4.2.8). Their members are adapters with InfiniBand ports, which stay
// enabled: RDMA is theirs. The network interface of the first one is the team's.
type interfaces struct {
	r   *Roster
	t   *Team
	run *service.Team // nil: it has no members
}

var _ kind = (*interfaces)(nil)

// knows implements kind: it is what parse allows.
func (*interfaces) knows(uint32) bool { return true }

// parse implements kind (WinOF 5.50, 4.1.6.1: "for IPoIB team, only 'AFT' type is supported").
func (*interfaces) parse(name string) (team.Type, error) {
	kind, err := parseType(name)
	if err == nil && kind != team.AFT {
		err = api.Wrong("type", strconv.Quote(name), "AFT, the only one for IPoIB interfaces: an InfiniBand port has no other's address")
	}
	return kind, err
}

// noMember implements kind.
func (x *interfaces) noMember(i int) string {
	configured := func(t *Team) bool { return t != x.t && slices.Contains(x.r.whole(&t.Team), i) }
	switch d := x.r.cfg.Driver; {
	case slices.ContainsFunc(x.r.fixed, configured):
		return "an adapter that is in no team of the configuration"
	case !d.InfiniBand(i):
		return "members of one kind: adapters with InfiniBand ports, in a team of IPoIB interfaces"
	case d.Functions(i) > 0: // WinOF 5.50, 1.7.1: "supported only on native machines (and not in HyperV or SR-IOV)"
		return "an adapter without virtual functions, with which the manual has no teams of IPoIB interfaces"
	}
	return ""
}

// mayAttach implements kind.
func (x *interfaces) mayAttach(_ int, q *api.TeamMemberRequest) error {
	switch n := len(x.t.Members); {
	case n >= ipoib.MostMembers:
		return api.Wrong("members", fmt.Sprint(n+1), fmt.Sprintf("%d at most", ipoib.MostMembers))
	case q.GivesMAC:
		return api.Wrong("SetTeamMacAddress", "given", "nothing for IPoIB interfaces: the team has the address of the member that carries")
	}
	return nil
}

// complete implements kind: mayAttach has said all.
func (*interfaces) complete(*registry.Team) error { return nil }

// become implements kind. A member that comes or goes is all that changes, as long as the team keeps its carrier.
func (x *interfaces) become(next registry.Team) error {
	r, before := x.r, x.t.Team
	i, _, more, few := only(r.Present(x.t), r.present(&next))
	former := r.whole(&before)
	if few = few && x.run != nil && r.carrier(&next) == r.carrier(&before); few && i < 0 {
		x.t.Team = next
		r.show()
		return nil
	}
	x.t.Team = next
	switch {
	case !few:
		return x.begin(former)
	case more:
		if err := r.cfg.Driver.AttachIPoIB(next.GUID, i, next.Primary == r.guid(i)); err != nil {
			return err
		}
	default:
		r.cfg.Driver.DetachIPoIB(next.GUID, i)
	}
	r.show()
	return nil
}

// back implements kind.
func (x *interfaces) back(before, next registry.Team) error {
	x.t.Team = before
	return x.begin(x.r.whole(&next))
}

// begin has the interfaces of members, and of those that were in the team before, run as they are to now.
func (x *interfaces) begin(former []int) (err error) {
	r, members, carrier := x.r, x.r.Present(x.t), x.r.Carrier(x.t)
	cfg := service.TeamConfig{NoFailBack: x.t.NoFallBack}
	for _, i := range members {
		cfg.Names = append(cfg.Names, r.name(i))
		if r.guid(i) == x.t.Primary {
			cfg.Primary = r.name(i)
		}
	}
	if carrier >= 0 {
		cfg.Changed = r.news.of(carrier)
	}
	x.run, err = r.cfg.Driver.JoinIPoIB(x.t.GUID, carrier, members, former, cfg)
	r.show()
	return err
}

// look implements kind.
func (x *interfaces) look() func() state {
	if x.run == nil {
		return nil
	}
	r, run := x.r, x.run
	return func() state {
		s := run.Status()
		o := state{kind: team.AFT.String(), counters: team.Counters{FailOvers: s.Counters.FailOvers, FailBacks: s.Counters.FailBacks,
			Announced: s.Counters.Announced, Lost: s.Lost, StoodBy: s.StoodBy}}
		for k, m := range s.Members {
			x := linkteam.MemberStatus{Name: m.Name, MemberStatus: team.MemberStatus{Status: m.Status, Role: m.Role}}
			if i := slices.IndexFunc(r.cfg.Adapters, func(a config.Adapter) bool { return a.Name == m.Name }); i >= 0 {
				x.Speed = r.cfg.Driver.PortSpeed(i)
			}
			if m.Interface != nil {
				st := m.Interface.Status()
				c := &st.Counters
				x.Traffic = linkteam.Traffic{SentFrames: c.SentPackets, SentBytes: c.SentBytes, ReceivedFrames: c.ReceivedPackets,
					ReceivedBytes: c.ReceivedBytes}
				if k == s.Active {
					o.address = st.Address.String()
				}
			}
			o.members = append(o.members, x)
		}
		return o
	}
}
