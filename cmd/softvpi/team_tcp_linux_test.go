package main

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestTeam_TCP: TCP connections over the network interface of an adapter on a team go on, and bring what was sent, while the member that
// carries loses its link and gets it back, and then the other loses its own: where one member carries them, and where they are spread
// over the members by a hash, by ports of a bridge and by lines to another team. Linux is on both sides of them.
func TestTeam_TCP(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	const flows = 6
	for _, kind := range []struct{ name, second string }{{"AFT", "Backup"}, {"SFT", "Backup"}, {"SLB", "Active"}, {"RLB", "Active"},
		{"ALB", "Active"}, {"SLA", "Active"}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			a, b, far := aroundTeam(t, kind.name)
			a.driver = a.spawn(t, "up", "--adapter", fmt.Sprintf("port=%s/24,team=%s,members=interface:m0:primary+interface:m1,host=tap:nic",
				a.ip, kind.name))
			a.driver.until(t, "listening")
			a.shell(t, "ip addr add 198.51.100.1/24 dev nic; ip link set nic up")
			b.shell(t, "ip addr add 198.51.100.2/24 dev nic; ip link set nic up")
			for _, x := range []*linuxHost{a, far} {
				x.stands(t, "both members are there", "Connected Active", "Connected "+kind.second)
			}
			var connections []*beat
			for n := range flows {
				connections = append(connections, a.talk(t, b, fmt.Sprintf("198.51.100.2:%d", 7+n)))
			}
			further := func(when string) {
				t.Helper()
				for _, c := range connections {
					c.further(t, when, 20)
				}
			}
			further("at first")
			for _, x := range failures(kind.second) {
				far.shell(t, x.command)
				a.stands(t, x.command, x.roles[:]...)
				further(x.command)
			}
			for _, m := range a.status(t).Teams[0].Members {
				if m.SentFrames == 0 || m.ReceivedFrames == 0 {
					t.Errorf("a member has carried nothing: %+v", m)
				}
			}
		})
	}
}
