package interop

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// The two ends: a bond of Linux in the virtual machine, and a team of ours with this system on it.
const (
	guestBondIP = "10.97.1.1"
	teamIP      = "10.97.1.2"
	teamMAC     = "02:00:00:97:01:02"
)

// teamed is a virtual machine with four cards, and this system. Two cards, eth2 and eth3, are joined with two members of a team; the
// other two, eth4 and eth5, are at a bridge of this system's kernel, with two interfaces that may be members.
type teamed struct {
	*testing.T
	*guest
	env    []string
	socket string // the members' sockets, without a digit at their end
	driver *tool
	cards  [2]string // those of the bond
}

func newTeamed(t *testing.T) *teamed {
	t.Helper()
	dir, err := os.MkdirTemp("", "team") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	x := &teamed{T: t, env: []string{"XDG_RUNTIME_DIR=" + dir}, socket: filepath.Join(dir, "card")}
	command(t, "ip", "link", "add", "lan", "type", "bridge")
	t.Cleanup(func() { command(t, "ip", "link", "del", "lan") })
	for i := range 2 {
		command(t, "bash", "-c", fmt.Sprintf("ip tuntap add card%d mode tap && ip link set card%[1]d master lan up && "+
			"ip link add m%[1]d type veth peer name s%[1]d && ip link set s%[1]d master lan up && ip link set m%[1]d up", i))
		t.Cleanup(func() { command(t, "bash", "-c", fmt.Sprintf("ip link del card%d; ip link del m%[1]d", i)) })
	}
	// This system's kernel hears the team's traffic at the bridge, too, and is to leave the answers to who has the address.
	command(t, "bash", "-c", "ip link set lan up && echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore")
	t.Cleanup(func() { command(t, "bash", "-c", "echo 0 >/proc/sys/net/ipv4/conf/all/arp_ignore") })
	x.guest = bootOn(t, 1500, tapWire, card{"52:54:00:97:01:01", x.socket + "0"}, card{"52:54:00:97:01:02", x.socket + "1"},
		card{"52:54:00:97:01:03", "card0"}, card{"52:54:00:97:01:04", "card1"})
	return x
}

// on returns the same with a driver whose only adapter is a team, and with a bond of two cards in the virtual machine, until t ends.
func (x *teamed) on(t *testing.T, team, bond, first, second string) *teamed {
	t.Helper()
	y := *x
	y.T, y.cards = t, [2]string{first, second}
	state := t.TempDir()
	y.driver = begin(t, y.dir, y.env, "up", "--skip-self-check", "--state", state,
		"--adapter", fmt.Sprintf("z=%s/24,mac=%s,host=tap:nic0,%s", teamIP, teamMAC, team))
	y.driver.says(t, "listening")
	t.Cleanup(func() {
		_ = y.driver.cmd.Process.Signal(syscall.SIGTERM)
		y.driver.succeeds(t, programLimit)
	})
	command(t, "ip", "addr", "add", teamIP+"/24", "dev", "nic0")
	command(t, "ip", "link", "set", "nic0", "up")
	y.sh(t, fmt.Sprintf("ip link add bond7 type bond miimon 100 %s && for c in %s %s; do ip link set $c down && "+
		"ip link set $c master bond7 && ip link set $c up; done && ip addr add %s/24 dev bond7 && ip link set bond7 up && "+
		"rdma link add rxe7 type rxe netdev bond7", bond, first, second, guestBondIP))
	t.Cleanup(func() { y.sh(t, "rdma link delete rxe7; ip link del bond7") })
	return &y
}

// stand waits until the team's members are so ("Connected Active"), and the machine's kernel says this of its bond.
func (x *teamed) stand(when, first, second, says string) {
	x.Helper()
	var kernel string
	var is [2]string
	if !await.Until(func() bool {
		var status struct {
			Teams []struct {
				Members []struct{ Status, Role string }
			}
		}
		p := begin(x, x.dir, x.env, "status", "--json")
		p.succeeds(x, programLimit)
		if err := json.Unmarshal([]byte(p.text()), &status); err != nil || len(status.Teams) != 1 || len(status.Teams[0].Members) != 2 {
			x.Fatalf("%v: %s", err, p.text())
		}
		for i, m := range status.Teams[0].Members {
			is[i] = m.Status + " " + m.Role
		}
		kernel = x.sh(x, "cat /proc/net/bonding/bond7")
		return is == [2]string{first, second} && strings.Contains(kernel, says)
	}) {
		x.Fatalf("%s: members are %q, want %q and %q; the kernel is to say %q and says\n%s", when, is, first, second, says, kernel)
	}
}

// aggregates is how many cards Linux has in the active aggregate of a bond by 802.3ad.
func aggregates(cards int) string { return fmt.Sprintf("Number of ports: %d\n", cards) }

// counted is how many packets each card of the bond has received and sent.
type counted struct{ in, out [2]int }

func (x *teamed) counters() (c counted) {
	x.Helper()
	for i, name := range x.cards {
		both := strings.Fields(x.sh(x, "cd /sys/class/net/"+name+"/statistics && cat rx_packets tx_packets"))
		for j, to := range []*int{&c.in[i], &c.out[i]} {
			n, err := strconv.Atoi(both[j])
			if err != nil {
				x.Fatal(err)
			}
			*to = n
		}
	}
	return c
}

// flows sends datagrams of 64 flows in each direction, again and again, until each end uses the links as it is to: those that carry
// carry some of each round, and the others at most what the links themselves have to say.
func (x *teamed) flows(when string, first, second bool) {
	x.Helper()
	const round = "for p in {20000..20063}; do echo flow >/dev/udp/%s/$p; done 2>/dev/null; true"
	var before, after counted
	if !await.Until(func() bool {
		before = x.counters()
		command(x, "bash", "-c", fmt.Sprintf(round, guestBondIP))
		x.sh(x, fmt.Sprintf(round, teamIP))
		after = x.counters()
		for i, carries := range [2]bool{first, second} {
			in, out := after.in[i]-before.in[i], after.out[i]-before.out[i]
			if carries && (in < 10 || out < 10) || !carries && (in >= 10 || out >= 10) {
				return false
			}
		}
		return true
	}) {
		x.Errorf("%s: links are to carry %v and %v; %+v\n%+v", when, first, second, before, after)
	}
}

// bytes moves some by TCP in both directions.
func (x *teamed) bytes(when string) {
	x.Helper()
	x.Run(when, func(t *testing.T) {
		x.bulk(t, family{"ipv4", netip.MustParseAddr(teamIP), netip.MustParseAddr(guestBondIP)})
	})
}

// pinging runs rping of rdma-core on the bond against ours on the team while does is done, step by step; more waits for pings that were
// sent after it was called.
func (x *teamed) pinging(does func(more func(when string))) {
	x.Helper()
	server := begin(x, x.dir, x.env, "nd_rping", "-s", "-a", teamIP)
	server.says(x, "listening")
	client := x.program(x, "stdbuf", "-oL", "rping", "-c", "-v", "-S", "1000", "-a", teamIP)
	pings := func() int { return strings.Count(client.text(), "ping data: rdma-ping-") }
	more := func(when string) {
		x.Helper()
		from := pings()
		if !await.Until(func() bool {
			select {
			case <-client.Done():
				x.Fatalf("%s: rping has ended: %s", when, last(client.text(), 500))
			default:
			}
			return pings() >= from+20
		}) {
			x.Fatalf("%s: rping stands still after %d pings: %s\n%s", when, pings(), last(client.text(), 500), last(server.text(), 500))
		}
	}
	more("at the start")
	does(more)
	_ = client.Kill()
}

// last returns the end of a text.
func last(s string, n int) string { return s[max(0, len(s)-n):] }

// direct are the members of a team whose other ends are the first two cards.
func (x *teamed) direct() string {
	return fmt.Sprintf("members=datagram:%s0+datagram:%[1]s1", x.socket)
}

// TestTeamAndBondOfLinux_Aggregates: a team of type 3AD, and Linux's bonding driver by 802.3ad at the other end of both links. Both ends
// aggregate both; where a link says nothing more, has another key, is cut or down, the other carries everything, and what TCP and an RC
// connection carry goes on. A team of type SLA, and Linux's bond without LACP, use both links.
func TestTeamAndBondOfLinux_Aggregates(t *testing.T) {
	site(t)
	x := newTeamed(t)
	t.Run("3AD", func(t *testing.T) {
		x := x.on(t, "team=3AD,"+x.direct(), "mode 802.3ad lacp_rate fast xmit_hash_policy layer3+4 ad_actor_system 02:00:00:97:00:07 "+
			"ad_user_port_key 1", "eth2", "eth3")
		const active, idle = "Connected Active", "Connected Backup"
		x.stand("a bond", active, active, aggregates(2))
		x.flows("a bond", true, true)
		x.bytes("by both")

		x.sh(t, "tc qdisc add dev eth3 clsact && tc filter add dev eth3 egress protocol 0x8809 matchall action drop")
		x.stand("the second silent", active, idle, "")
		x.flows("the second silent", true, false)
		x.bytes("beside a silent link")
		x.sh(t, "tc qdisc del dev eth3 clsact")
		x.stand("it speaks again", active, active, aggregates(2))
		x.flows("it speaks again", true, true)

		enslave := func(bond string) {
			x.sh(t, "ip link set eth3 down && ip link set eth3 nomaster && ip link set eth3 master "+bond+" && ip link set eth3 up")
		}
		x.sh(t, "ip link add bond8 type bond mode 802.3ad miimon 100 lacp_rate fast ad_actor_system 02:00:00:97:00:07 ad_user_port_key 5 && "+
			"ip link set bond8 up")
		enslave("bond8")
		x.stand("another key", active, idle, aggregates(1))
		x.bytes("beside a link with another key")
		enslave("bond7")
		x.sh(t, "ip link del bond8")
		x.stand("the same key again", active, active, aggregates(2))

		// What a cut link swallows counts as sent: Soft-RoCE takes a card that refuses a packet for an error of its own.
		x.pinging(func(more func(when string)) {
			for _, card := range x.cards {
				first, second := active, idle
				if card == "eth2" {
					first, second = idle, active
				}
				x.sh(t, "tc qdisc add dev "+card+" root netem loss 100% && tc qdisc add dev "+card+" clsact && tc filter add dev "+card+
					" ingress matchall action drop")
				more(card + " cut")
				x.stand(card+" cut", first, second, aggregates(1))
				x.bytes("without " + card)
				more("without " + card)
				x.sh(t, "tc qdisc del dev "+card+" clsact && tc qdisc del dev "+card+" root")
				x.stand(card+" whole", active, active, aggregates(2))
				more(card + " whole")
			}
		})
		x.sh(t, "ip link set eth2 down")
		x.stand("eth2 down", idle, active, aggregates(1))
		x.bytes("eth2 down")
		x.sh(t, "ip link set eth2 up")
		x.stand("eth2 up", active, active, aggregates(2))
		x.flows("at the end", true, true)
	})
	t.Run("SLA", func(t *testing.T) {
		x := x.on(t, "team=SLA,"+x.direct(), "mode balance-xor xmit_hash_policy layer3+4", "eth2", "eth3")
		x.stand("a bond", "Connected Active", "Connected Active", "load balancing (xor)")
		x.flows("a bond", true, true)
		x.bytes("by both")
		x.pinging(func(func(string)) {})
	})
}

// TestTeamAndBondOfLinux_AtABridge: teams of the types of which a switch knows nothing, and the modes of Linux's bonding driver that are
// like them, at one bridge of Linux. What TCP carries arrives while links of either end fail and come back, and RC connections outlive the
// failures of our links. Not those where peers are told the MACs of other members, RLB and ALB: Linux's connection manager ends a
// connection whose neighbour changes its MAC. Neither is Soft-RoCE asked to outlive that its own bond fails over: with active-backup a
// send in that instant ends with a local error.
func TestTeamAndBondOfLinux_AtABridge(t *testing.T) {
	site(t)
	x := newTeamed(t)
	for _, c := range []struct {
		team, bond string
		rdma       bool
	}{
		{"AFT", "active-backup", true}, {"SFT", "active-backup", true}, {"SLB", "balance-tlb", true},
		{"RLB", "balance-alb", false}, {"ALB", "balance-alb", false},
	} {
		t.Run(c.team+" "+c.bond, func(t *testing.T) {
			x := x.on(t, "team="+c.team+",members=interface:m0:primary+interface:m1", "mode "+c.bond, "eth4", "eth5")
			second := "Connected Backup"
			if c.bond != "active-backup" {
				second = "Connected Active"
			}
			up := func(when string) { x.stand(when, "Connected Active", second, "Currently Active Slave: eth") }
			up("at the start")
			x.bytes("at the start")
			ours := func(more func(when string)) {
				for _, s := range []struct{ link, first, second string }{
					{"s0", "Disconnected Backup", "Connected Active"}, {"s1", "Connected Active", "Disconnected Backup"},
				} {
					command(t, "ip", "link", "set", s.link, "down")
					x.stand(s.link+" down", s.first, s.second, "")
					more(s.link + " down")
					x.bytes("without " + s.link)
					command(t, "ip", "link", "set", s.link, "up")
					up(s.link + " up")
					more(s.link + " up")
				}
			}
			if c.rdma {
				x.pinging(ours)
			} else {
				ours(func(string) {})
			}
			for _, card := range x.cards {
				x.sh(t, "ip link set "+card+" down")
				x.bytes("without " + card)
				x.sh(t, "ip link set "+card+" up")
				x.bytes("with " + card)
			}
		})
	}
}
