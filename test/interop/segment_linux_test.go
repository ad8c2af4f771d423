package interop

import (
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// The two ends of the segment.
var (
	ours   = addrs{netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("fd99::1")}
	theirs = addrs{netip.MustParseAddr("10.99.0.2"), netip.MustParseAddr("fd99::2")}
)

// addrs are the addresses of an end.
type addrs struct{ v4, v6 netip.Addr }

// family is an IP version to run a test over.
type family struct {
	name         string
	ours, theirs netip.Addr
}

var families = []family{{"ipv4", ours.v4, theirs.v4}, {"ipv6", ours.v6, theirs.v6}}

// command runs a program that must succeed, and returns what it printed.
func command(t testing.TB, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// segment makes the TAPs of a guest in this process's namespace: tap0 carries RoCE if it is the guest's wire, and has SoftVPI's addresses
// then; ctl0 carries the commands for the guest. On another wire the addresses are an adapter's: were they tap0's, too, the kernel would
// claim them at every interface.
func segment(t testing.TB, mtu int, wire string) {
	t.Helper()
	tap(t, "tap0")
	tap(t, "ctl0")
	for _, step := range []string{
		"ip link set lo up",
		"ip link set tap0 mtu " + strconv.Itoa(mtu) + " up",
		"ip link set ctl0 up",
		"ip addr add 10.98.0.1/30 dev ctl0",
		// No request for it before the guest is there. An end of a connection to the guest before may have asked already.
		"ip neigh replace 10.98.0.2 lladdr 52:54:00:98:00:02 dev ctl0 nud permanent",
	} {
		command(t, strings.Fields(step)...)
	}
	// In a container IPv6 may be off in new namespaces.
	for _, f := range []string{"all", "tap0"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+f+"/disable_ipv6", []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if wire != tapWire {
		return
	}
	command(t, "ip", "addr", "add", ours.v4.String()+"/24", "dev", "tap0")
	command(t, "ip", "addr", "add", ours.v6.String()+"/64", "dev", "tap0", "nodad")
}

// tap makes a TAP, which goes when the test ends, however far it came.
func tap(t testing.TB, name string) {
	t.Helper()
	command(t, "ip", "tuntap", "add", name, "mode", "tap")
	t.Cleanup(func() { command(t, "ip", "link", "del", name) })
}
