package team

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/eth"
)

// names are what Status calls the members.
func names(l *Link) (all []string) {
	for _, m := range l.Status().Members {
		all = append(all, m.Name)
	}
	return all
}

// TestChange: a team goes on to reach its peer, and to be reached, while links become members and leave again, whichever carry.
func TestChange(t *testing.T) {
	for _, kind := range []team.Type{team.AFT, team.SLB, team.RLB, team.ALB} {
		t.Run(kind.String(), func(t *testing.T) {
			b, s := newBed(t), newSwitch(t)
			l := b.team(kind, plugInto(t, s), plugInto(t, s))
			peer := plugInto(t, s)
			b.add(peer)
			b.serve(l, 1)
			b.serve(peer, 2)
			exchange(b, 1, 2)
			mac, added := l.MAC(), plugInto(t, s)
			if err := l.AddMember("c", team.Member{MAC: eth.MAC{2, 0, 0, 7, 7, 7}}, added, false); err != nil {
				t.Fatal(err)
			}
			exchange(b, 1, 2)
			b.pass(2 * time.Second)
			exchange(b, 1, 2)
			for _, i := range []int{0, 0} { // the active one, each time
				left, err := l.RemoveMember(i)
				if err != nil {
					t.Fatal(err)
				}
				exchange(b, 1, 2)
				b.pass(time.Second)
				exchange(b, 1, 2)
				if err := left.Close(); err != nil {
					t.Error(err)
				}
			}
			if got := names(l); !slices.Equal(got, []string{"c"}) || l.MAC() != mac || len(added.sent) == 0 || !l.WireState().Up {
				t.Errorf("members %q, MAC %v, %d frames left by the one that was added", got, l.MAC(), len(added.sent))
			}
		})
	}
}

// TestBecome: a team goes on to reach its peer, and to be reached, while it gets one type after the other, and serves members that come
// later in the way of its type.
func TestBecome(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	l := b.team(team.LACP, plugInto(t, s), plugInto(t, s))
	peer := plugInto(t, s)
	b.add(peer)
	b.serve(l, 1)
	b.serve(peer, 2)
	b.pass(8 * time.Second) // until the partner is known to be silent
	exchange(b, 1, 2)
	mac := l.MAC()
	for _, kind := range []team.Type{team.AFT, team.RLB, team.SFT, team.SLB, team.ALB, team.AFT} {
		if err := l.Become(kind, false); err != nil {
			t.Fatal(kind, err)
		}
		exchange(b, 1, 2)
		b.pass(time.Second)
		exchange(b, 1, 2)
		if got := l.Status(); got.Type != kind || l.MAC() != mac {
			t.Errorf("it is %+v, want %v", got, kind)
		}
	}
	if err := l.AddMember("c", team.Member{MAC: eth.MAC{2, 0, 0, 7, 7, 7}}, plugInto(t, s), false); err != nil {
		t.Fatal(err)
	}
	if err := l.Become(team.SFT, false); err == nil || l.Status().Type != team.AFT {
		t.Errorf("three members of SFT: %v", err)
	}
	exchange(b, 1, 2)
}

// told is a link that notes which groups it is to hear, and the rate of the pauses that it is to obey.
type told struct {
	*plug
	link.Stations
	groups []eth.MAC
	rate   uint64
}

func (r *told) Capabilities() link.Capabilities {
	c := r.plug.Capabilities()
	r.Stations = c.Stations
	c.Stations, c.Pauses = r, r
	return c
}

func (r *told) Hear(group [6]byte, hear bool) error {
	if hear {
		r.groups = append(r.groups, group)
	}
	return r.Stations.Hear(group, hear)
}

func (r *told) SetPauses(_, _ pause.Scope, rate uint64) { r.rate = rate }

// TestAddMember_Told: who becomes a member hears the groups that others hear, and obeys the pauses that they do; as long as it is
// disabled nothing leaves by it.
func TestAddMember_Told(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	l := b.team(team.SLA, plugInto(t, s))
	b.serve(l, 1)
	group := eth.MAC{1, 0x80, 0xc2, 0, 0, 0x0e}
	if err := l.Hear(group, true); err != nil {
		t.Fatal(err)
	}
	if err := l.Hear(eth.MAC{1, 0x80, 0xc2, 0, 0, 0x00}, true); err != nil {
		t.Fatal(err)
	}
	if err := l.Hear(eth.MAC{1, 0x80, 0xc2, 0, 0, 0x00}, false); err != nil {
		t.Fatal(err)
	}
	l.Capabilities().Pauses.SetPauses(pause.Scope{}, pause.Scope{}, 7)
	added := &told{plug: plugInto(t, s)}
	if err := l.AddMember("", team.Member{MAC: eth.MAC{2, 0, 0, 7, 7, 7}}, added, true); err != nil {
		t.Fatal(err)
	}
	b.pass(2 * time.Second)
	far := plugInto(t, s)
	b.add(far)
	b.serve(far, 2)
	exchange(b, 1, 2)
	if s := l.Status().Members[1]; s.Status != team.Disabled || len(added.sent) != 0 {
		t.Errorf("it is %+v, and %d frames left by it", s, len(added.sent))
	}
	if !slices.Equal(added.groups, []eth.MAC{group}) || added.rate != 7 {
		t.Errorf("it hears %v, with pauses of %d", added.groups, added.rate)
	}
}

// TestAddMember_Refused: what cannot be a member is left alone.
func TestAddMember_Refused(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	l := b.team(team.SFT, plugInto(t, s), plugInto(t, s))
	m, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: addr(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	var wrong *station.FieldError
	if err := l.AddMember("x", team.Member{MAC: eth.MAC{2, 0, 0, 7, 7, 7}}, m, false); !errors.As(err, &wrong) {
		t.Errorf("a link without frames: %v", err)
	}
	var e *team.Error
	third := plugInto(t, s)
	if err := l.AddMember("x", team.Member{MAC: eth.MAC{2, 0, 0, 7, 7, 7}}, third, false); !errors.As(err, &e) || len(names(l)) != 2 {
		t.Errorf("a third member: %v", err)
	}
	if _, err := third.Receive(b.in); err != nil {
		t.Errorf("the third link is closed: %v", err)
	}
	_ = third.Close()
}
