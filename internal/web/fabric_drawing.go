package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// drawing is a fabric as a picture: switches in rows above each other, hosts below.
type drawing struct {
	Width, Height int
	Links         []drawnLink
	Nodes         []drawnNode
}

// drawnLink is a line between two nodes.
type drawnLink struct {
	X1, Y1, X2, Y2 int
	Class          string // what it looks like
	Title          string // what it says
	Href           string
	// Mark is what is wrong with it, at MX and MY: paused, or lost.
	Mark   string
	MX, MY int
}

// drawnNode is a host or a switch.
type drawnNode struct {
	X, Y, Width, Height int
	TX, TY              int // of its name
	Class, Name, Title  string
}

const (
	// mostDrawn is how many links are drawn.
	mostDrawn = 600

	nodeWidth, nodeHeight  = 92, 30
	columnWidth, rowHeight = 108, 130
	margin                 = 24
	longestName            = 12
)

// drawnAt is a node while places are looked for.
type drawnAt struct {
	name       string
	host, ib   bool
	used       bool
	tier       int
	order      float64
	neighbours []string
	x, y       int
}

// draw makes a picture; nil: there are too many links.
func draw(ports []fabricPort, chosen string) *drawing {
	if len(ports) > 2*mostDrawn {
		return nil
	}
	nodes, names := nodesOf(ports)
	rows := rowsOf(nodes, names)
	d := &drawing{}
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row))
	}
	d.Width, d.Height = 2*margin+columnWidth*max(widest, 1), 2*margin+rowHeight*max(len(rows)-1, 0)+nodeHeight
	for r, row := range rows {
		for i, n := range row {
			n.x = margin + (2*i+1)*(d.Width-2*margin)/(2*len(row))
			n.y = margin + nodeHeight/2 + rowHeight*r
			d.Nodes = append(d.Nodes, drawNode(n))
		}
	}
	by := map[string]*fabricPort{}
	for i := range ports {
		by[ports[i].Name] = &ports[i]
	}
	for i := range ports {
		p, o := &ports[i], by[ports[i].Peer]
		if o == nil || p.Name > o.Name {
			continue // the other end has it
		}
		d.Links = append(d.Links, drawLink(p, o, nodes, chosen))
	}
	return d
}

// nodesOf finds the nodes of ports, and their neighbours.
func nodesOf(ports []fabricPort) (map[string]*drawnAt, []string) {
	nodes, names := map[string]*drawnAt{}, []string{}
	owner := map[string]string{}
	for i := range ports {
		p := &ports[i]
		owner[p.Name] = p.Node
		if nodes[p.Node] == nil {
			nodes[p.Node] = &drawnAt{name: p.Node, host: p.Host, ib: p.InfiniBand, tier: -1}
			names = append(names, p.Node)
		}
		nodes[p.Node].used = nodes[p.Node].used || p.Program != ""
	}
	for i := range ports {
		if to := owner[ports[i].Peer]; to != "" {
			nodes[ports[i].Node].neighbours = append(nodes[ports[i].Node].neighbours, to)
		}
	}
	return nodes, names
}

// rowsOf puts nodes into rows by how far they are from hosts, those at the top first, and in each by where their neighbours are.
func rowsOf(nodes map[string]*drawnAt, names []string) [][]*drawnAt {
	var next []string
	for _, name := range names {
		if nodes[name].host {
			nodes[name].tier = 0
			next = append(next, name)
		}
	}
	if len(next) == 0 && len(names) > 0 {
		nodes[names[0]].tier = 1
		next = names[:1]
	}
	highest := 0
	for ; len(next) > 0; next = next[1:] {
		at := nodes[next[0]]
		highest = max(highest, at.tier)
		for _, name := range at.neighbours {
			if nodes[name].tier < 0 {
				nodes[name].tier = at.tier + 1
				next = append(next, name)
			}
		}
	}
	rows := make([][]*drawnAt, highest+1)
	for i, name := range names {
		n := nodes[name]
		n.order = float64(i)
		n.tier = max(n.tier, 0)
		rows[highest-n.tier] = append(rows[highest-n.tier], n)
	}
	for i := len(rows) - 2; i >= 0; i-- { // above what is below
		settle(rows[i], nodes, func(o, n *drawnAt) bool { return o.tier < n.tier })
	}
	for i := 1; i < len(rows); i++ { // hosts below their switch
		settle(rows[i], nodes, func(o, n *drawnAt) bool { return o.tier > n.tier })
	}
	return slices.DeleteFunc(rows, func(r []*drawnAt) bool { return len(r) == 0 })
}

// settle orders a row by the mean place of the neighbours that count.
func settle(row []*drawnAt, nodes map[string]*drawnAt, counts func(o, n *drawnAt) bool) {
	mean := map[*drawnAt]float64{}
	for _, n := range row {
		sum, k := 0., 0.
		for _, name := range n.neighbours {
			if o := nodes[name]; counts(o, n) {
				sum, k = sum+o.order, k+1
			}
		}
		if mean[n] = n.order; k > 0 {
			mean[n] = sum / k
		}
	}
	slices.SortStableFunc(row, func(a, b *drawnAt) int { return cmp.Compare(mean[a], mean[b]) })
	for i, n := range row {
		n.order = float64(i)
	}
}

func drawNode(n *drawnAt) drawnNode {
	d := drawnNode{X: n.x - nodeWidth/2, Y: n.y - nodeHeight/2, Width: nodeWidth, Height: nodeHeight, TX: n.x, TY: n.y + 5, Name: n.name,
		Title: n.name, Class: "node switch"}
	if n.host {
		d.Class = "node host"
		if n.used {
			d.Class, d.Title = "node host used", n.name+", an adapter is plugged in"
		}
	}
	if n.ib {
		d.Class += " ib"
		d.Title += ", InfiniBand"
	}
	if r := []rune(n.name); len(r) > longestName {
		d.Name = string(r[:longestName-1]) + "…"
	}
	return d
}

// drawLink draws a link as its ends are.
func drawLink(p, o *fabricPort, nodes map[string]*drawnAt, chosen string) drawnLink {
	a, b := nodes[p.Node], nodes[o.Node]
	l := drawnLink{X1: a.x, Y1: a.y, X2: b.x, Y2: b.y, MX: (a.x + b.x) / 2, MY: (a.y + b.y) / 2, Href: p.Link}
	if p.Host && !o.Host { // what matters is at the switch's end
		l.Href = o.Link
	}
	use := max(p.Use, o.Use)
	switch {
	case !p.Up || !o.Up:
		l.Class = "link out"
	default:
		l.Class = fmt.Sprintf("link use%d", min(int(math.Ceil(4*use)), 4))
	}
	if p.Name == chosen || o.Name == chosen {
		l.Class += " chosen"
	}
	switch {
	case p.Lost+o.Lost+p.Errors+o.Errors > 0:
		l.Mark = "lost"
	case len(p.Paused)+len(o.Paused) > 0 || p.Pauses+o.Pauses > 0:
		l.Mark = "paused"
	}
	l.Title = fmt.Sprintf("%s to %s: %s", p.Name, o.Name, "down")
	if p.Up && o.Up {
		l.Title = fmt.Sprintf("%s to %s: %.0f %% used, %s there, %s back", p.Name, o.Name, 100*use, bitsText(p.Out), bitsText(p.In))
	}
	if q := max(p.Queued, o.Queued); q > 0 {
		l.Title += fmt.Sprintf(", %s queued", bytesText(q))
	}
	if l.Mark != "" {
		l.Title += ", " + l.Mark
	}
	return l
}

// bitsText returns a rate as a person reads it.
func bitsText(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "Kb/s"}} {
		if v >= u.size {
			return fmt.Sprintf("%.3g %s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f b/s", v)
}

// bytesText returns a size as a person reads it.
func bytesText(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.3g MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.3g KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
