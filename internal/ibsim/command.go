package ibsim

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// CommandError says what is wrong with a command. Test for it with errors.As.
type CommandError = lan.CommandError

func refuse(format string, args ...any) error {
	return &CommandError{Problem: fmt.Sprintf(format, args...)}
}

// command is something that can be done to a running fabric.
type command struct {
	usage string // what follows the name
	help  string
	run   func(now clock.Time, s *Server, args []string) (string, error)
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"help":    {"", "list the commands", help},
		"unlink":  {"NODE[PORT]", "pull a cable", onLink((*fabric.Fabric).Unlink)},
		"relink":  {"NODE[PORT]", "put it back in", onLink((*fabric.Fabric).Relink)},
		"rate":    {"NODE[PORT] 4xEDR", "let a link do so much and no more", setRate},
		"loss":    {"NODE[PORT] 0.1%", "lose so many of the packets on a link", setLoss},
		"counter": {"NODE[PORT] NAME VALUE", "set an error counter of a port", setCounter},
		"watchdog": {"NODE[PORT]", "tell by trap 131 that a port's link partner sends no flow control packets",
			onLink((*fabric.Fabric).FlowControlTimeout)},
		"reset":       {"NODE", "start a node anew", reset},
		"description": {"NODE TEXT", "give a node another NodeDescription", describe},
		"image":       {"NODE GUID", "give a node another SystemImageGUID", setImage},
		"clients":     {"", "list the programs that are attached", listClients},
		"state":       {"FIRST", "print the ports of all nodes from number FIRST on as JSON", portStates},
		"status":      {"", "show what programs have not read, and how many were cut off for that", status},
	}
}

// Command executes a command such as unlink sw1[7], and returns its output. Names with spaces must be in
// quotes. The error is a *CommandError, a *fabric.NodeError or a *fabric.CounterError.
func (s *Server) Command(line string) (answer string, err error) {
	words, err := split(line)
	if err != nil || len(words) == 0 {
		return "", err
	}
	if answer, mine, err := s.commandEthernet(words); mine {
		return answer, err
	}
	c, ok := commands[strings.ToLower(words[0])]
	if !ok {
		return "", refuse("command %q is not known; allowed: %s", words[0], strings.Join(commandNames(), ", "))
	}
	if want := len(strings.Fields(c.usage)); len(words)-1 != want {
		return "", refuse("%s has %d arguments; allowed: %s", words[0], len(words)-1, strings.TrimSpace(words[0]+" "+c.usage))
	}
	s.Do(func(now clock.Time, _ *fabric.Fabric) { answer, err = c.run(now, s, words[1:]) })
	return answer, err
}

// commandEthernet executes a command for the Ethernet; mine is false if it is not for it.
func (s *Server) commandEthernet(words []string) (answer string, mine bool, err error) {
	s.Do(func(clock.Time, *fabric.Fabric) { answer, mine, err = s.rack.Command(words) })
	var field *ethernet.FieldError
	if errors.As(err, &field) {
		err = refuse("%v", err)
	}
	return answer, mine, err
}

func commandNames() []string {
	var names []string
	for n := range commands {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// split splits a line at spaces outside quotes, and removes the quotes.
func split(line string) (words []string, err error) {
	var word strings.Builder
	quoted, any := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, any = !quoted, true
		case !quoted && (r == ' ' || r == '\t' || r == '\r'):
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	if quoted {
		return nil, refuse("a quote is not closed in %q", line)
	}
	if any {
		words = append(words, word.String())
	}
	return words, nil
}

// link parses a port such as sw1[7], which must have a link.
func (s *Server) link(text string) (fabric.Place, error) {
	name, rest, ok := strings.Cut(text, "[")
	number, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 8)
	if !ok || err != nil || !strings.HasSuffix(rest, "]") {
		return fabric.Place{}, refuse("port %q; allowed: a node and a port, such as sw1[7]", text)
	}
	node, err := s.fabric.Find(name)
	if err != nil {
		return fabric.Place{}, err
	}
	at := fabric.Place{Node: node, Port: uint8(number)}
	return at, s.fabric.Check(at)
}

func onLink(do func(*fabric.Fabric, clock.Time, fabric.Place)) func(clock.Time, *Server, []string) (string, error) {
	return func(now clock.Time, s *Server, args []string) (string, error) {
		at, err := s.link(args[0])
		if err == nil {
			do(s.fabric, now, at)
		}
		return "", err
	}
}

func setRate(now clock.Time, s *Server, args []string) (string, error) {
	at, err := s.link(args[0])
	if err != nil {
		return "", err
	}
	r, ok := topology.ParseRate(args[1])
	if !ok {
		return "", refuse("rate %q; allowed: 1x, 2x, 4x, 8x or 12x with SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR, as in 4xEDR",
			args[1])
	}
	s.fabric.SetRate(now, at, r)
	return "", nil
}

func setLoss(_ clock.Time, s *Server, args []string) (string, error) {
	at, err := s.link(args[0])
	if err != nil {
		return "", err
	}
	share, err := lan.ParseShare("loss", args[1])
	if err != nil {
		return "", err
	}
	s.fabric.SetLoss(at, share)
	return "", nil
}

func setCounter(now clock.Time, s *Server, args []string) (string, error) {
	at, err := s.link(args[0])
	if err != nil {
		return "", err
	}
	v, err := strconv.ParseUint(args[2], 0, 64)
	if err != nil {
		return "", refuse("value %q; allowed: whole numbers from 0", args[2])
	}
	return "", s.fabric.SetCounter(now, at, args[1], v)
}

func reset(now clock.Time, s *Server, args []string) (string, error) {
	node, err := s.fabric.Find(args[0])
	if err == nil {
		s.fabric.Reset(now, node)
	}
	return "", err
}

func describe(now clock.Time, s *Server, args []string) (string, error) {
	node, err := s.fabric.Find(args[0])
	if err != nil {
		return "", err
	}
	if len(args[1]) > mad.NodeDescriptionLen {
		return "", refuse("description has %d bytes; allowed: up to %d", len(args[1]), mad.NodeDescriptionLen)
	}
	s.fabric.SetDescription(now, node, args[1])
	return "", nil
}

func setImage(now clock.Time, s *Server, args []string) (string, error) {
	node, err := s.fabric.Find(args[0])
	if err != nil {
		return "", err
	}
	guid, err := strconv.ParseUint(args[1], 0, 64)
	if err != nil || guid == 0 {
		return "", refuse("GUID %q; allowed: numbers from 1, such as 0x2c9", args[1])
	}
	s.fabric.SetSystemImageGUID(now, node, guid)
	return "", nil
}

func help(_ clock.Time, s *Server, _ []string) (string, error) {
	var b strings.Builder
	for _, n := range commandNames() {
		fmt.Fprintf(&b, "%-36s %s\n", strings.TrimSpace(n+" "+commands[n].usage), commands[n].help)
	}
	if s.rack.HasEthernet() {
		b.WriteString("of the Ethernet, where PORT is a host, or a port of a switch as NODE[PORT]:\n")
		for _, line := range lan.Help() {
			b.WriteString(line + "\n")
		}
	}
	return b.String(), nil
}

func status(_ clock.Time, s *Server, _ []string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "programs of ibsim's protocol: %d of %d; datagrams unread: %d of %d; cut off because they did not read: %d, with %d datagrams\n",
		len(s.clients), maxClients, s.unread, maxUnread, s.cut, s.lost)
	for _, line := range s.rack.Reports() {
		b.WriteString(line + "\n")
	}
	return b.String(), nil
}

func portStates(_ clock.Time, s *Server, args []string) (string, error) {
	text, err := s.rack.Part(args[0])
	if err != nil {
		return "", refuse("%v", err)
	}
	return text, nil
}

func listClients(_ clock.Time, s *Server, _ []string) (string, error) {
	var lines []string
	for _, c := range s.clients {
		kind := ""
		if c.isSM {
			kind = ", subnet manager"
		}
		if c.queue.count > 0 {
			kind += fmt.Sprintf(", %d datagrams unread", c.queue.count)
		}
		lines = append(lines, fmt.Sprintf("%d at %s, id %d%s\n", c.number, s.names[c.at.Node], c.process, kind))
	}
	sort.Strings(lines)
	for _, a := range s.rack.Adapters() {
		lines = append(lines, fmt.Sprintf("adapter at %s[%d], LID %d, %v, of %s\n", a.Node, a.Port, a.LID, a.State, a.Program))
	}
	for _, a := range s.rack.EthernetAdapters() {
		lines = append(lines, fmt.Sprintf("adapter at %s, %s, of %s\n", a.Host, map[bool]string{true: "up", false: "down"}[a.Up], a.Program))
	}
	return strings.Join(lines, ""), nil
}
