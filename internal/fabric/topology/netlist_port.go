package topology

import (
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/wire/mad"
)

func parseGUID(s string) (uint64, error) {
	s = strings.TrimSuffix(strings.TrimSpace(s), ")")
	return strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
}

// port reads a line such as
//
//	[1](2c903) "S-2c902"[7] w=2	# lid 4 lmc 0 "sw1" lid 2 4xQDR
func (p *netlistReader) port(text, comment string) error {
	if p.node < 0 {
		return p.fail("port", "belongs to no node; want it directly below a Switch, Ca, Hca or Rt line")
	}
	n := &p.topology.Nodes[p.node]
	e := end{line: p.line, node: p.node, peerPort: 1, width: p.width, speed: p.speed}
	number, rest, ok := bracketed(text)
	var err error
	if e.port, err = strconv.Atoi(number); !ok || err != nil || e.port < 1 || e.port > n.NumPorts() {
		return p.fail("port", "is %q, want 1 to %d of %q", number, n.NumPorts(), n.ID)
	}
	before, quoted, ok := strings.Cut(rest, `"`)
	peer, after, closed := strings.Cut(quoted, `"`)
	if !ok || !closed || peer == "" {
		return p.fail("remote node", "is missing; want it in quotes, as in [1] \"sw1\"[7]")
	}
	e.peer = peer
	if before = strings.TrimSpace(before); before != "" {
		if n.Ports[e.port].GUID, err = parseGUID(strings.TrimPrefix(before, "(")); err != nil || before[0] != '(' {
			return p.fail("port GUID", "is %q, want a hexadecimal number in parentheses", before)
		}
	}
	after = strings.TrimSpace(after)
	if strings.HasPrefix(after, "[") {
		if number, after, ok = bracketed(after); !ok {
			return p.fail("remote port", "is not closed; want [1]")
		}
		if e.peerPort, err = strconv.Atoi(number); err != nil || e.peerPort < 1 || e.peerPort > MaxNodePorts {
			return p.fail("remote port", "is %q, want 1 to %d", number, MaxNodePorts)
		}
	}
	if err := p.options(&e, after); err != nil {
		return err
	}
	if err := p.portComment(&e, n, comment); err != nil {
		return err
	}
	if len(p.ends) >= maxPorts {
		return p.fail("port", "is one line too many; want at most %d", maxPorts)
	}
	p.ends = append(p.ends, e)
	return nil
}

// bracketed splits "[7] rest" into 7 and the rest.
func bracketed(text string) (inside, rest string, ok bool) {
	inside, rest, ok = strings.Cut(strings.TrimPrefix(text, "["), "]")
	return strings.TrimSpace(inside), strings.TrimSpace(rest), ok
}

// options reads the remote port's GUID, which is ignored because that port's own line has it, and ibsim's
// w=, s= and e=. The v= and m= that ibnetdiscover -f prints belong to the port and are ignored.
func (p *netlistReader) options(e *end, text string) error {
	if strings.HasPrefix(text, "(") {
		guid, rest, ok := strings.Cut(text[1:], ")")
		if _, err := parseGUID(guid); err != nil || !ok {
			return p.fail("remote port GUID", "is %q, want a hexadecimal number in parentheses", text)
		}
		text = rest
	}
	for _, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		v, err := strconv.ParseUint(value, 0, 8)
		most := map[string]uint64{"w": 31, "s": 7, "e": 15, "v": 255, "m": 255}[key]
		if !ok || most == 0 {
			return p.fail("option", "is %q, want w=, s= or e=", word)
		}
		if err != nil || v > most || key == "w" && v == 0 {
			return p.fail("option", "is %q, want %s= to %d", word, key, most)
		}
		switch {
		case key == "w":
			e.width = mad.Widest(uint8(v))
		case key == "s" && v > 0:
			e.speed = (&mad.PortInfo{LinkSpeedActive: uint8(v)}).ActiveSpeed()
		case key == "e" && v > 0:
			e.speed = (&mad.PortInfo{LinkSpeedExtActive: uint8(v)}).ActiveSpeed()
		}
	}
	return nil
}

// portComment reads the port's LID and the link's width and speed from a comment such as
//
//	lid 4 lmc 0 "sw1" lid 2 4xQDR
func (p *netlistReader) portComment(e *end, n *Node, comment string) error {
	_, rest := quotedComment(comment)
	if n.Type != mad.NodeSwitch && len(rest) < len(comment) {
		own, _, _ := strings.Cut(comment, `"`)
		if err := p.lid(&n.Ports[e.port], own); err != nil {
			return err
		}
	}
	words := strings.Fields(rest)
	if len(words) < 3 || words[0] != "lid" {
		return nil
	}
	lanes, speed, ok := strings.Cut(words[2], "x")
	count, err := strconv.Atoi(lanes)
	if !ok || err != nil || mad.WidthOf(count) == 0 {
		return p.fail("link width", "is %q, want 1x, 2x, 4x, 8x or 12x and the speed, as in 4xQDR", words[2])
	}
	e.width = mad.WidthOf(count)
	if e.speed, ok = mad.ParseSpeed(speed); !ok {
		return p.fail("link speed", "is %q, want SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR, as in 4xQDR", words[2])
	}
	return nil
}
