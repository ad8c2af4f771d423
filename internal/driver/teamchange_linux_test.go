package driver

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestTeam_MembersChange: connections of the adapter that carries a team, and of its virtual function, go on while others become members
// and leave, those that carry and those that do not, while its own wire leaves and is back, and while the team gets other types.
func TestTeam_MembersChange(t *testing.T) {
	systemtest.Mark(t)
	for i, kind := range []string{"AFT", "SLB", "RLB", "ALB", "3AD"} {
		t.Run(kind, func(t *testing.T) {
			d := start(t, parsed(t, append(threeAtASwitch, "e=192.0.2.5/24,switch=s,path=wire")...))
			defer stop(t, d)
			if why := d.NoAttach(); why != "" {
				t.Skip(why)
			}
			if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "red", Settings: []string{"address=192.0.2.11/24"}}); err != nil {
				t.Fatal(err)
			}
			_, err := d.CreateTeam(api.TeamRequest{Name: "T", Type: kind})
			if err != nil {
				t.Fatal(err)
			}
			attach := func(name string, q api.TeamMemberRequest) {
				t.Helper()
				if _, err := d.AttachMember("T", name, q); err != nil {
					t.Fatal(err)
				}
			}
			detach := func(name string) {
				t.Helper()
				if _, err := d.DetachMember("T", name); err != nil {
					t.Fatal(err)
				}
			}
			attach("a", api.TeamMemberRequest{GivesMAC: true})
			far, port := netip.MustParseAddr("192.0.2.5"), uint16(7100+2*i)
			talkers := []*talker{talk(t, d.cfg.Socket, netip.MustParseAddr("192.0.2.1"), far, port),
				talkAs(t, paths.Function(d.cfg.Socket, "red"), d.cfg.Socket, netip.MustParseAddr("192.0.2.11"), far, port+1)}
			var before [2]uint64
			for k, x := range talkers {
				before[k] = x.again.Load()
			}
			goOn := func() {
				t.Helper()
				for _, x := range talkers {
					x.proceeds(t, 3)
				}
			}
			attach("b", api.TeamMemberRequest{Primary: true})
			goOn()
			attach("c", api.TeamMemberRequest{})
			goOn()
			if kind == "AFT" {
				await.Eventually(t, "the primary member is active", func() bool {
					return roles(t, d) == "a Connected Backup b Connected Active c Connected Backup "
				})
				goOn()
			}
			detach("b")
			goOn()
			detach("c")
			goOn()
			across(t, end{d, 1}, end{d, 2}) // who have left are what they were
			attach("c", api.TeamMemberRequest{})
			goOn()
			for _, other := range [][]string{{"3AD", "SFT", "3AD"}, {"SLA", "3AD"}}[i%2] {
				if _, err := d.ModifyTeam("T", api.TeamRequest{Name: "T", Type: other}); err != nil {
					t.Fatal(err)
				}
				goOn()
			}
			detach("a")
			goOn()
			if a := d.Status().Adapters[0]; a.Wire != "team T" || d.Teams()[0].Carrier != "a" {
				t.Errorf("who carries the team is %+v", a)
			}
			attach("a", api.TeamMemberRequest{})
			goOn()
			for k, x := range talkers {
				if n := x.again.Load() - before[k]; n != 0 {
					t.Errorf("connections from %v have ended %d times, by %v", x.from, n, x.last.Load())
				}
			}
			if s := d.Status(); s.Adapters[1].Wire != "switch s" || !s.Adapters[1].Enabled || s.Adapters[2].Wire != "none: team T has it" ||
				len(s.Teams[0].Members) != 2 || s.Teams[0].Members[0].Wire != "switch s" {
				t.Errorf("the team is %+v, and b on %q", s.Teams, s.Adapters[1].Wire)
			}
		})
	}
}
