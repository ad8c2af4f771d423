package lan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// tuning is a setting of a priority at a port that can be changed while it runs. Names are those of the file.
type tuning struct {
	allowed string
	set     func(g *ethernet.Group, q *ethernet.Queue, value string) bool
}

var tunings = map[string]tuning{
	"kmin": {sizes, func(_ *ethernet.Group, q *ethernet.Queue, v string) bool { return parseSize(v, &q.ECN.Kmin) }},
	"kmax": {sizes, func(_ *ethernet.Group, q *ethernet.Queue, v string) bool { return parseSize(v, &q.ECN.Kmax) }},
	"pmax": {"0% to 100%", func(_ *ethernet.Group, q *ethernet.Queue, v string) bool {
		p, err := ParseShare("pmax", v)
		q.ECN.Pmax = p
		return err == nil
	}},
	"mark": {"leaving or coming", func(_ *ethernet.Group, q *ethernet.Queue, v string) bool {
		q.ECN.Leaving = v == "leaving"
		return v == "leaving" || v == "coming"
	}},
	"most": {sizes, func(_ *ethernet.Group, q *ethernet.Queue, v string) bool {
		q.Alpha = 0
		return parseSize(v, &q.Most) && q.Most > 0
	}},
	"alpha": {shares, func(_ *ethernet.Group, q *ethernet.Queue, v string) bool {
		q.Most = 0
		return parseAlpha(v, &q.Alpha)
	}},
	"weight": {"0 to 100", func(_ *ethernet.Group, q *ethernet.Queue, v string) bool {
		w, err := strconv.ParseUint(v, 10, 8)
		q.Weight = uint8(w)
		return err == nil && w <= 100
	}},
	"strict": {"true or false", func(_ *ethernet.Group, q *ethernet.Queue, v string) bool {
		q.Strict = v == "true"
		return v == "true" || v == "false"
	}},
	"xoff": {sizes, func(g *ethernet.Group, _ *ethernet.Queue, v string) bool {
		g.Alpha = 0
		return parseSize(v, &g.Xoff) && g.Xoff > 0
	}},
	"xoff_alpha": {shares, func(g *ethernet.Group, _ *ethernet.Queue, v string) bool {
		g.Xoff = 0
		return parseAlpha(v, &g.Alpha)
	}},
	"xon": {sizes, func(g *ethernet.Group, _ *ethernet.Queue, v string) bool { return parseSize(v, &g.Xon) && g.Xon > 0 }},
	"headroom": {sizes + ", auto or none", func(g *ethernet.Group, _ *ethernet.Queue, v string) bool {
		switch v {
		case "auto":
			g.Headroom = 0
			return true
		case "none":
			g.Headroom = -1
			return true
		}
		return parseSize(v, &g.Headroom) && g.Headroom > 0
	}},
}

const (
	sizes  = "bytes, such as 40KB or 2MB"
	shares = "a share of the free buffer, 0.0078125 to 64"
	// mostSize is the largest size that is parsed; what a setting may be the engine says.
	mostSize = 1 << 31
)

// units are those of sizes, as in the file.
var units = []struct {
	name string
	size float64
}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}

// parseSize parses a size such as 40KB; a number is KB, as in the file.
func parseSize(s string, into *int) bool {
	size := 1e3
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			s, size = number, u.size
			break
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if f *= size; err != nil || !(f >= 0 && f < mostSize) {
		return false
	}
	*into = int(f)
	return true
}

func parseAlpha(s string, into *float64) bool {
	f, err := strconv.ParseFloat(s, 64)
	*into = f
	return err == nil && f >= 1./128 && f <= 64
}

// tune changes settings of priorities at a port, or at all ports of a switch: all, or none if one is wrong.
func tune(n *Network, now clock.Time, args []string) (string, error) {
	ends, err := n.ends(args[0])
	if err != nil {
		return "", err
	}
	set, err := listSet(args[1])
	if err != nil {
		return "", err
	}
	type done struct {
		ethernet.End
		i int
		g ethernet.Group
		q ethernet.Queue
	}
	var undo []done
	for _, e := range ends {
		p := n.fabric.Port(e)
		for i := range ethernet.Priorities {
			if set>>i&1 == 0 {
				continue
			}
			c := p.Config()
			undo = append(undo, done{e, i, c.Groups[i], c.Queues[i]})
			if err = tunePriority(now, p, i, args[2:]); err != nil {
				for _, u := range undo {
					_, _ = n.fabric.Port(u.End).SetGroup(now, u.i, u.g), n.fabric.Port(u.End).SetQueue(now, u.i, u.q)
				}
				return "", err
			}
		}
		n.fabric.Wake(e.Node)
		n.changed(now, e)
	}
	return "", nil
}

// tunePriority changes settings of a priority at a port.
func tunePriority(now clock.Time, p *ethernet.Port, i int, words []string) error {
	c := p.Config()
	g, q := c.Groups[i], c.Queues[i]
	if g.Headroom == 0 { // as it is settled
		g.Headroom = -1
	}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		t, known := tunings[name]
		if !ok || !known {
			return refuse("setting %q; allowed: NAME=VALUE with alpha, headroom, kmax, kmin, mark, most, pmax, strict, weight, xoff, xoff_alpha, xon", w)
		}
		if !t.set(&g, &q, value) {
			return refuse("%s %q; allowed: %s", name, value, t.allowed)
		}
	}
	var field *ethernet.FieldError
	if q.ECN.Kmin > q.ECN.Kmax {
		return refuse("kmin is %s and kmax %s; allowed: kmin up to kmax", sizeText(q.ECN.Kmin), sizeText(q.ECN.Kmax))
	}
	err := p.SetGroup(now, i, g)
	if err == nil {
		err = p.SetQueue(now, i, q)
	}
	if errors.As(err, &field) {
		return refuse("%v", err)
	}
	return err
}

// ends returns a port, or all ports of a switch.
func (n *Network) ends(text string) (all []ethernet.End, err error) {
	if node := n.Find(text); node >= 0 {
		for p := range n.ports(node) {
			all = append(all, ethernet.End{Node: node, Port: p})
		}
		return all, nil
	}
	e, err := n.end(text)
	return []ethernet.End{e}, err
}

// showSettings prints how the priorities of a port are set, those alike together.
func showSettings(n *Network, _ clock.Time, args []string) (string, error) {
	e, err := n.end(args[0])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, line := range priorityTexts(n.fabric.Port(e)) {
		b.WriteString(line + "\n")
	}
	return b.String(), nil
}

// priorityTexts says how the priorities of a port are set, those alike together.
func priorityTexts(p *ethernet.Port) (lines []string) {
	c := p.Config()
	first := 0
	for i := range ethernet.Priorities {
		if i+1 < ethernet.Priorities && priorityText(&c, i+1) == priorityText(&c, i) {
			continue
		}
		name := fmt.Sprintf("priority %d", i)
		if first < i {
			name = fmt.Sprintf("priorities %d to %d", first, i)
		}
		lines = append(lines, name+": "+priorityText(&c, i))
		first = i + 1
	}
	return lines
}

func priorityText(c *ethernet.PortConfig, i int) string {
	g, q := &c.Groups[i], &c.Queues[i]
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if q.Strict {
		add("strict")
	} else {
		add("weight %d", q.Weight)
	}
	if q.ECN.Kmax > 0 {
		add("marks from %s on, %.3g%% at %s, all above", sizeText(q.ECN.Kmin), 100*q.ECN.Pmax, sizeText(q.ECN.Kmax))
	} else {
		add("no marks")
	}
	if c.FlowControl != ethernet.NoFlowControl && (c.FlowControl == ethernet.GlobalPause && i == 0 || c.Lossless>>i&1 != 0) {
		xoff := fmt.Sprintf("%.4g of the free buffer", g.Alpha)
		if g.Xoff > 0 {
			xoff = sizeText(g.Xoff)
		}
		add("pauses at %s until %s less, headroom %s", xoff, sizeText(g.Xon), sizeText(g.Headroom))
	} else if q.Most > 0 {
		add("%s may wait", sizeText(q.Most))
	} else {
		add("%.4g of the free buffer may wait", q.Alpha)
	}
	return strings.Join(all, "; ")
}

// sizeText returns a size as people write it.
func sizeText(n int) string {
	for _, u := range units {
		if f := float64(n) / u.size; f >= 1 && f == float64(int(f*1000))/1000 {
			return fmt.Sprintf("%g %s", f, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
