package lan

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// CommandError says what is wrong with a command.
type CommandError struct{ Problem string }

// Error implements error.
func (e *CommandError) Error() string { return e.Problem }

func refuse(format string, args ...any) error { return &CommandError{fmt.Sprintf(format, args...)} }

// command is something that can be done to a network that runs.
type command struct {
	usage string // what follows the name
	help  string
	run   func(n *Network, now clock.Time, args []string) (string, error)
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"unlink":    {"PORT", "pull a cable", setUp(false)},
		"relink":    {"PORT", "put it back in", setUp(true)},
		"flap":      {"PORT TIME", "pull a cable, and put it back in after a time, such as 200ms", flap},
		"loss":      {"PORT 0.1%", "lose so many of the frames on a link, in both directions", setLoss},
		"rate":      {"PORT 1Gb/s", "give a link another rate", setRate},
		"take":      {"HOST 1Gb/s|all|none", "let a host take so much of what arrives, and no more", setTake},
		"storm":     {"PORT 3|none", "pause priorities of the other end for no reason, until none", setStorm},
		"pfc":       {"PORT|SWITCH 3|none|adapter", "change the lossless priorities of a port, or of all of a switch, or make a host follow its adapter", setPFC},
		"mtu":       {"PORT|SWITCH 1500|all", "let a port, or all of a switch, take IP packets up to a length, or all", setMTU},
		"ports":     {"", "list the ports of the Ethernet with what they have sent, lost and marked", listPorts},
		"port":      {"PORT", "show the counters of a port of the Ethernet", showPort},
		"set":       {"PORT|SWITCH 3|all NAME=VALUE...", "change settings of priorities, by their names in the file, such as kmin=40KB xoff=60KB", tune},
		"settings":  {"PORT", "show how the priorities of a port are set", showSettings},
		"circle":    {"SWITCH,SWITCH,SWITCH|none", "make frames among some switches all go to the next, as wrong routes do that lead to deadlocks", setCircle},
		"incidents": {"", "list pauses that did not end, and queues that wait for each other", listIncidents},
		"lldp":      {"SWITCH|all", "say what switches have heard by LLDP, and agreed by DCBX", listLLDP},
		"lacp":      {"SWITCH|all", "say how the links of bundles stand with their partners", listLACP},
		"macs":      {"SWITCH", "list the addresses that a switch has learned", listMACs},
	}
}

// Command executes a command that is for the network: one that only it has, or one about a node of its. It returns false if it is for
// nobody here. The error is a *CommandError or a *ethernet.FieldError.
func (n *Network) Command(now clock.Time, words []string) (answer string, mine bool, err error) {
	c, ok := commands[strings.ToLower(words[0])]
	if !ok {
		return "", false, nil
	}
	if want := len(strings.Fields(c.usage)); len(words)-1 != want && !(strings.HasSuffix(c.usage, "...") && len(words)-1 > want) {
		return "", len(words) > 1 && n.names(words[1]), refuse("%s has %d arguments; allowed: %s", words[0], len(words)-1,
			strings.TrimSpace(words[0]+" "+c.usage))
	}
	if shared := words[0] == "unlink" || words[0] == "relink" || words[0] == "loss" || words[0] == "rate"; shared && !n.names(words[1]) {
		return "", false, nil
	}
	answer, err = c.run(n, now, words[1:])
	return answer, true, err
}

// names reports whether a text names a node of the network, or a port of one.
func (n *Network) names(text string) bool {
	name, _, _ := strings.Cut(text, "[")
	return n.Find(name) >= 0
}

// Help lists the commands, a line each.
func Help() (lines []string) {
	for name, c := range commands {
		lines = append(lines, fmt.Sprintf("%-36s %s", strings.TrimSpace(name+" "+c.usage), c.help))
	}
	sort.Strings(lines)
	return lines
}

// end finds a port: a host, for the end of its link, or a port of a switch.
func (n *Network) end(text string) (ethernet.End, error) {
	if node := n.Find(text); node >= 0 && n.Host(node) {
		return ethernet.End{Node: node}, nil // one of several links of a host has its number in its name
	}
	name, rest, numbered := strings.Cut(text, "[")
	node := n.Find(name)
	if node < 0 {
		return ethernet.End{}, refuse("node %q is none of the Ethernet", name)
	}
	number := 1
	if numbered || !n.Host(node) {
		var err error
		if number, err = strconv.Atoi(strings.TrimSuffix(rest, "]")); err != nil || !strings.HasSuffix(rest, "]") || number < 1 ||
			number > n.ports(node) {
			return ethernet.End{}, refuse("port %q; allowed: a host, or a switch and a port, such as %s[1], up to %d", text, name, n.ports(node))
		}
	}
	return ethernet.End{Node: node, Port: number - 1}, nil
}

// both returns the two ends of the link of a port.
func (n *Network) both(text string) (a, b ethernet.End, err error) {
	if a, err = n.end(text); err != nil {
		return a, b, err
	}
	if b = n.fabric.Peer(a); b.Node < 0 {
		return a, b, refuse("port %s has no link", text)
	}
	return a, b, nil
}

func setUp(up bool) func(n *Network, now clock.Time, args []string) (string, error) {
	return func(n *Network, now clock.Time, args []string) (string, error) {
		a, _, err := n.both(args[0])
		if err == nil {
			n.setUp(now, a, up)
		}
		return "", err
	}
}

// setUp pulls the cable of a link, or puts it back in.
func (n *Network) setUp(now clock.Time, at ethernet.End, up bool) {
	b := n.fabric.Peer(at)
	key := n.linkOf(at)
	if up {
		delete(n.pulled, key)
	} else {
		n.pulled[key] = clock.Never
	}
	n.restore(now, at, b)
}

// linkOf returns the end by which a link is known.
func (n *Network) linkOf(at ethernet.End) ethernet.End {
	b := n.fabric.Peer(at)
	if b.Node < at.Node || b.Node == at.Node && b.Port < at.Port {
		return b
	}
	return at
}

// restore makes a link carry frames if its cable is in, and adapters are plugged in at its hosts.
func (n *Network) restore(now clock.Time, a, b ethernet.End) {
	_, out := n.pulled[n.linkOf(a)]
	up := !out
	for _, e := range []ethernet.End{a, b} {
		if e.Node >= 0 && n.Host(e.Node) && n.jacks[e.Node] == nil {
			up = false
		}
	}
	n.fabric.SetUp(now, a, up)
	if n.domain != nil {
		n.learnAnew(a, b, up)
	}
	for _, e := range []ethernet.End{a, b} {
		if e.Node >= 0 && n.jacks[e.Node] != nil {
			n.jacks[e.Node].tell()
		}
		n.changed(now, e)
		n.bonds.Follow(now, e)
	}
}

// learnAnew tells the domain that a link has come or gone: one of a host takes what was heard there with it, one between switches
// changes ways.
func (n *Network) learnAnew(a, b ethernet.End, up bool) {
	if n.Host(a.Node) {
		a, b = b, a
	}
	switch {
	case b.Node < 0 || !n.Host(b.Node):
		n.domain.Rebuild()
	case !up && a.Node >= 0:
		n.domain.Forget(a)
	}
}

func flap(n *Network, now clock.Time, args []string) (string, error) {
	a, _, err := n.both(args[0])
	if err != nil {
		return "", err
	}
	d, err := time.ParseDuration(args[1])
	if err != nil || d <= 0 || d > time.Hour {
		return "", refuse("time %q; allowed: up to 1h, such as 200ms", args[1])
	}
	n.setUp(now, a, false)
	n.pulled[n.linkOf(a)] = now.Add(d)
	n.nextFlap()
	return "", nil
}

// nextFlap notes when the next cable is put back in.
func (n *Network) nextFlap() {
	n.flaps = clock.Never
	for _, until := range n.pulled {
		n.flaps = clock.Min(n.flaps, until)
	}
}

// endFlaps puts cables back in whose time is over.
func (n *Network) endFlaps(now clock.Time) {
	for e, until := range n.pulled {
		if until <= now {
			n.setUp(now, e, true)
		}
	}
	n.nextFlap()
}

// ParseShare parses a share such as 0.1% or 0.001. The error is a *CommandError that says what it is of.
func ParseShare(what, s string) (float64, error) {
	text, percent := strings.CutSuffix(s, "%")
	share, err := strconv.ParseFloat(text, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, refuse("%s %q; allowed: 0%% to 100%%", what, s)
	}
	return share, nil
}

func setLoss(n *Network, _ clock.Time, args []string) (string, error) {
	a, b, err := n.both(args[0])
	if err != nil {
		return "", err
	}
	share, err := ParseShare("loss", args[1])
	if err != nil {
		return "", err
	}
	n.fabric.SetLoss(a, share)
	n.fabric.SetLoss(b, share)
	return "", nil
}

// parseRate parses a rate such as 1Gb/s.
func parseRate(s string) (uint64, bool) {
	for _, u := range rates {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			f *= float64(u.size)
			return uint64(f), err == nil && f >= leastRate && f <= mostRate
		}
	}
	return 0, false
}

const (
	leastRate = 1e6
	mostRate  = 1e12
)

var errUntimed = errors.New("rates of links are not kept; allowed: a fabric that was started with --timing")

func setRate(n *Network, now clock.Time, args []string) (string, error) {
	a, b, err := n.both(args[0])
	if err != nil {
		return "", err
	}
	r, ok := parseRate(args[1])
	if !ok {
		return "", refuse("rate %q; allowed: 1Mb/s to 1Tb/s", args[1])
	}
	if !n.timing {
		return "", refuse("%v", errUntimed)
	}
	for _, e := range []ethernet.End{a, b} {
		if err := n.fabric.Port(e).SetRate(now, r); err != nil {
			return "", err
		}
		n.fabric.Wake(e.Node)
		n.bonds.Follow(now, e)
		if j := n.jacks[e.Node]; j != nil {
			j.tell()
		}
	}
	return "", nil
}

func setTake(n *Network, now clock.Time, args []string) (string, error) {
	a, err := n.end(args[0])
	if err != nil {
		return "", err
	}
	if !n.Host(a.Node) {
		return "", refuse("node %q is a switch; allowed: a host", args[0])
	}
	s := n.fabric.Station(a.Node)
	j := n.jacks[a.Node]
	rate, ok := uint64(0), true
	if args[1] != "all" && args[1] != "none" {
		rate, ok = parseRate(args[1])
	}
	if !ok {
		return "", refuse("rate %q; allowed: 1Mb/s to 1Tb/s, all or none", args[1])
	}
	n.hung[a.Node] = args[1] == "none"
	s.SetTake(now, rate)
	s.Hold(now, n.hung[a.Node] || j != nil && j.held)
	n.fabric.Wake(a.Node)
	return "", nil
}

// parsePriorities parses priorities such as 3,4, or none.
func parsePriorities(s string) (set uint8, err error) {
	if s == "none" {
		return 0, nil
	}
	for p := range strings.SplitSeq(s, ",") {
		i, err := strconv.Atoi(p)
		if err != nil || i < 0 || i >= ethernet.Priorities {
			return 0, refuse("priorities %q; allowed: 0 to 7, such as 3 or 3,4, or none", s)
		}
		set |= 1 << i
	}
	return set, nil
}

func setStorm(n *Network, now clock.Time, args []string) (string, error) {
	a, _, err := n.both(args[0])
	if err != nil {
		return "", err
	}
	set, err := parsePriorities(args[1])
	if err == nil {
		n.fabric.Port(a).Storm(now, set)
		n.fabric.Wake(a.Node)
	}
	return "", err
}

func setPFC(n *Network, now clock.Time, args []string) (string, error) {
	if node := n.Find(args[0]); args[1] == "adapter" && node >= 0 && n.Host(node) {
		n.own[node] = false
		n.followPauses(now, node)
		return "", nil
	}
	set, err := parsePriorities(args[1])
	if err != nil {
		return "", err
	}
	ends, err := n.ends(args[0])
	if err != nil {
		return "", err
	}
	for _, e := range ends {
		if err := n.fabric.Port(e).SetPFC(now, set); err != nil {
			return "", err
		}
		n.own[e.Node] = n.Host(e.Node)
		n.changed(now, e)
		n.fabric.Wake(e.Node)
	}
	return "", nil
}
