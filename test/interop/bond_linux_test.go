package interop

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// bondFabric has two links to host a, which are a bundle by LACP, and one to host b.
const bondFabric = `{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [
	{"from": "a", "to": "s"}, {"from": "a", "to": "s"}, {"from": "b", "to": "s"}]}, "switch": {"lacp": "active", "lacp_rate": "fast"}}`

// The bond's ends: the virtual machine behind two adapters with the bond's MAC, and this system.
const (
	bondMAC  = "52:54:00:97:00:01" // of the first card, which Linux takes for the bond
	bondIP   = "10.97.0.1"
	beyondIP = "10.97.0.2"
)

// bonded is a live switch with LACP, with a virtual machine whose two cards are the host sides of adapters at two of its ports, and with
// this system at a third.
type bonded struct {
	*testing.T
	*guest
	env []string
}

func newBonded(t *testing.T) *bonded {
	t.Helper()
	x := &bonded{T: t}
	dir, err := os.MkdirTemp("", "bond") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	x.env = []string{"XDG_RUNTIME_DIR=" + dir}
	file, socket := filepath.Join(dir, "net.json"), filepath.Join(dir, "card")
	if err := os.WriteFile(file, []byte(bondFabric), 0o600); err != nil {
		t.Fatal(err)
	}
	x.begins("cables", "fabric", "run", file, "--name", "bond")
	drive := func(name string, adapters ...string) {
		args := []string{"up", "--skip-self-check", "--fabric", "bond", "--socket", filepath.Join(dir, name), "--state", filepath.Join(dir, name+".state")}
		for _, a := range adapters {
			args = append(args, "--adapter", a)
		}
		x.begins("listening", args...)
	}
	drive("near", fmt.Sprintf("x=%s/24,fabric=a,host=datagram:%s0,mac=%s", bondIP, socket, bondMAC),
		fmt.Sprintf("y=10.97.0.3/24,fabric=a[2],host=datagram:%s1,mac=%s", socket, bondMAC))
	drive("far", "z="+beyondIP+"/24,fabric=b,host=tap:nic0")
	command(t, "ip", "addr", "add", beyondIP+"/24", "dev", "nic0")
	command(t, "ip", "link", "set", "nic0", "up")
	x.guest = bootOn(t, 1500, tapWire, card{bondMAC, socket + "0"}, card{"52:54:00:97:00:02", socket + "1"})
	return x
}

// begins starts one of our programs, and waits until it says what shows that it runs.
func (x *bonded) begins(says string, args ...string) {
	x.Helper()
	begin(x, site(x.T), x.env, args...).says(x, says)
}

// do executes a command of the fabric.
func (x *bonded) do(words ...string) string {
	x.Helper()
	p := begin(x, x.dir, x.env, append([]string{"fabric", "do", "--name", "bond"}, words...)...)
	p.succeeds(x, programLimit)
	return p.text()
}

// links returns the state of the switch's ports to the two cards.
func (x *bonded) links() (by [2]state.Port) {
	x.Helper()
	var part state.Part
	if err := json.Unmarshal([]byte(x.do("state", "0")), &part); err != nil {
		x.Fatal(err)
	}
	for _, p := range part.Ports {
		if p.Node == "s" && p.Port <= len(by) {
			by[p.Port-1] = p
		}
	}
	return by
}

// stand waits until the switch's two links stand so, and the machine's kernel counts so many ports in the bond's aggregate.
func (x *bonded) stand(when, first, second string, ports int) {
	x.Helper()
	var links [2]state.Port
	var kernel string
	if !await.Until(func() bool {
		links = x.links()
		kernel = x.sh(x, "cat /proc/net/bonding/bond7")
		return strings.HasPrefix(links[0].LACP, first) && strings.HasPrefix(links[1].LACP, second) &&
			strings.Contains(kernel, fmt.Sprintf("Number of ports: %d\n", ports))
	}) {
		x.Fatalf("%s: want %q, %q and %d ports; the switch says\n%s\n%s\nand the kernel\n%s", when, first, second, ports, links[0].LACP, links[1].LACP, kernel)
	}
}

// flows sends datagrams of 64 flows in each direction, again and again, until both ends use the links as they are to: those that carry
// carry some of each round, and the others none.
func (x *bonded) flows(when string, first, second bool) {
	x.Helper()
	const round = "for p in {20000..20063}; do echo flow >/dev/udp/%s/$p; done 2>/dev/null; true"
	var before, after [2]state.Port
	if !await.Until(func() bool {
		before = x.links()
		command(x, "bash", "-c", fmt.Sprintf(round, bondIP))
		x.sh(x, fmt.Sprintf(round, beyondIP))
		after = x.links()
		for i, carries := range [2]bool{first, second} {
			in, out := after[i].InFrames-before[i].InFrames, after[i].OutFrames-before[i].OutFrames
			if carries && (in < 5 || out < 5) || !carries && (in > 0 || out > 0) {
				return false
			}
		}
		return true
	}) {
		x.Errorf("%s: links carry %v and %v; %+v\n%+v", when, first, second, before, after)
	}
}

// bytes moves some by TCP in both directions.
func (x *bonded) bytes(when string) {
	x.Helper()
	x.Run(when, func(t *testing.T) {
		x.bulk(t, family{"ipv4", netip.MustParseAddr(beyondIP), netip.MustParseAddr(bondIP)})
	})
}

// TestBondOfLinuxInAGuest: Linux's bonding driver, by 802.3ad, in a virtual machine with two cards at two ports of a switch with LACP. Both
// aggregate, and flows take both links in both directions. Where one link says nothing more, has another key or loses its cable, the
// other carries everything, and both do again when that is over; what TCP carries arrives all the while.
func TestBondOfLinuxInAGuest(t *testing.T) {
	site(t)
	x := newBonded(t)
	// Both bonds are of one system; the second has another key, for the link that is to have one.
	const bond = "ip link add bond%d type bond mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4 " +
		"ad_actor_system 02:00:00:97:00:07 ad_user_port_key %d && "
	enslave := func(card string, bond int) string {
		return fmt.Sprintf("ip link set %s down && ip link set %[1]s nomaster && ip link set %[1]s master bond%d && ip link set %[1]s up", card, bond)
	}
	x.sh(t, fmt.Sprintf(bond, 7, 1)+fmt.Sprintf(bond, 8, 5)+enslave("eth2", 7)+" && "+enslave("eth3", 7)+
		" && ip link set bond8 up && ip addr add "+bondIP+"/24 dev bond7 && ip link set bond7 up")
	x.stand("a bond", "distributing, current", "distributing, current", 2)
	for i, p := range x.links() {
		if !strings.Contains(p.LACP, "with 02:00:00:97:00:07 key ") {
			t.Errorf("link %d: %s", i+1, p.LACP)
		}
	}
	x.flows("a bond", true, true)
	x.bytes("by the bond")

	x.sh(t, "tc qdisc add dev eth3 clsact && tc filter add dev eth3 egress protocol 0x8809 matchall action drop")
	x.stand("the second link silent", "distributing, current", "standby", 2)
	x.flows("the second link silent", true, false)
	x.bytes("beside a silent link")
	x.sh(t, "tc qdisc del dev eth3 clsact")
	x.stand("it speaks again", "distributing, current", "distributing, current", 2)
	x.flows("it speaks again", true, true)

	x.sh(t, enslave("eth3", 8))
	x.stand("another key", "distributing, current", "standby", 1)
	key := regexp.MustCompile(` key \d+`)
	if by := x.links(); key.FindString(by[0].LACP) == key.FindString(by[1].LACP) || !strings.Contains(by[1].LACP, "02:00:00:97:00:07") {
		t.Errorf("of one system with two keys the switch says\n%s\n%s", by[0].LACP, by[1].LACP)
	}
	x.bytes("beside a link with another key")
	x.sh(t, enslave("eth3", 7))
	x.stand("the same key again", "distributing, current", "distributing, current", 2)

	x.do("unlink", "a[2]")
	x.stand("a cable out", "distributing, current", "down", 1)
	x.flows("a cable out", true, false)
	x.bytes("with a cable out")
	x.do("relink", "a[2]")
	x.stand("the cable back", "distributing, current", "distributing, current", 2)
	x.flows("the cable back", true, true)
	x.bytes("by both again")
}
