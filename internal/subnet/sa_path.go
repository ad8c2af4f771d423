package subnet

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// paths is how packets of the subnet that was brought up travel.
type paths struct {
	graph  *Graph
	routes *Routes
	swOf   []int32 // by node
}

// rates are the codes of PathRecord.Rate by Mb/s, in the round numbers of the specification (IBA 15.2.5.16).
var rates = map[int]uint8{
	2500: 2, 5000: 5, 10000: 3, 20000: 6, 30000: 4, 40000: 7, 60000: 8, 80000: 9, 120000: 10,
	14000: 11, 56000: 12, 112000: 13, 168000: 14, 25000: 15, 100000: 16, 200000: 17, 300000: 18,
	28000: 19, 50000: 20, 400000: 21, 600000: 22, 800000: 23, 1200000: 24, 1600000: 25, 2400000: 26,
}

// mbps is the other direction, 0 for codes that are none.
var mbps [64]int

func init() {
	for m, code := range rates {
		mbps[code] = m
	}
}

// rate is the code of a port's link.
func rate(i *mad.PortInfo) uint8 {
	lane := map[mad.Speed]int{mad.SpeedSDR: 2500, mad.SpeedDDR: 5000, mad.SpeedQDR: 10000, mad.SpeedFDR10: 10000, mad.SpeedFDR: 14000,
		mad.SpeedEDR: 25000, mad.SpeedHDR: 50000, mad.SpeedNDR: 100000, mad.SpeedXDR: 200000}[i.ActiveSpeed()]
	if code := rates[lane*mad.Lanes(i.LinkWidthActive)]; code != 0 {
		return code
	}
	return 2 // what every link can
}

// slower is the slower of two rates.
func slower(a, b uint8) uint8 {
	if mbps[b] < mbps[a] {
		return b
	}
	return a
}

// way is what a path from one end port to a LID of another can carry.
type way struct {
	mtu  ib.MTU
	rate uint8
	life uint8
	sl   uint8
}

// mtuOf is what fits through a port: of port 0 of a switch what it can, of others what its link has.
func mtuOf(p *Port) ib.MTU {
	if p.Num == 0 {
		return p.Info.MTUCap
	}
	return p.Info.NeighborMTU
}

// follow walks the path that packets take, port by port; false: they do not arrive.
func (a *administration) follow(from, to int32, lid ib.LID) (w way, ok bool) {
	n, t := a.sm.live, &a.sm.paths
	at := &n.Ports[from]
	w = way{mtu: mtuOf(at), rate: rate(&at.Info)}
	if from == to {
		return w, true
	}
	w.life = packetLife
	take := func(p int32) {
		w.mtu, w.rate = min(w.mtu, mtuOf(&n.Ports[p])), slower(w.rate, rate(&n.Ports[p].Info))
	}
	take(to)
	p := from
	if !n.isSwitch(from) {
		if p = at.Peer; p == none {
			return w, false
		}
		if p == to {
			return w, true
		}
	}
	sw := t.swOf[n.Ports[p].Node]
	if sw == none {
		return w, false
	}
	w.sl = t.routes.SL(sw, lid)
	for range len(n.Switches) + 1 {
		node := &n.Nodes[n.Ports[p].Node]
		sw := t.swOf[n.Ports[p].Node]
		if sw == none || int(lid) >= t.routes.stride {
			return w, false
		}
		out := node.First + int32(t.routes.Table(sw)[lid])
		if out == to {
			return w, true
		}
		if out > node.First+int32(node.Info.NumPorts) || n.Ports[out].Peer == none || out == node.First {
			return w, false
		}
		take(out)
		if p = n.Ports[out].Peer; p == to {
			return w, true
		}
	}
	return w, false
}

// wish is what a request wants of paths.
type wish struct {
	rec    mad.PathRecord
	mask   uint64 // components, as of a PathRecord
	most   int    // paths of a pair
	result []byte
	n      int
}

func (w *wish) has(c uint64) bool { return w.mask&c == c }

// pathRecords answers Get and GetTable of PathRecord (IBA 15.2.5.16).
func (a *administration) pathRecords(r *request) {
	if r.sa.Method != mad.MethodGet && r.sa.Method != mad.MethodGetTable {
		a.refuse(r, mad.StatusMethodUnsupported)
		return
	}
	rec, err := mad.ParsePathRecord(r.data)
	if err != nil {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	w := &wish{rec: rec, mask: r.sa.ComponentMask, most: 127}
	if w.has(mad.PathNumPath) && rec.NumPath > 0 {
		w.most = int(rec.NumPath)
	}
	if r.sa.Method == mad.MethodGet {
		w.most = 1
	}
	from, status := a.ends(r, w.has(mad.PathSGID), rec.SGID, w.has(mad.PathSLID), rec.SLID)
	if status != mad.StatusOK {
		a.refuse(r, status)
		return
	}
	if w.has(mad.PathDGID) && rec.DGID[0] == 0xff {
		a.groupPath(r, w, from)
		return
	}
	to, status := a.ends(r, w.has(mad.PathDGID), rec.DGID, w.has(mad.PathDLID), rec.DLID)
	if status != mad.StatusOK {
		a.refuse(r, status)
		return
	}
	for _, f := range from {
		for _, t := range to {
			a.between(r, w, f, t)
		}
		if len(w.result) > maxTable {
			break
		}
	}
	a.respond(r, w.result, w.n, mad.PathRecordLen)
}

// ends are the end ports that a GID and a LID in a request stand for: all where neither is given.
func (a *administration) ends(r *request, hasGID bool, gid ib.GID, hasLID bool, lid ib.LID) (list []int32, status uint16) {
	n := a.sm.live
	p := none
	if hasGID {
		q, foreign := a.portOfGID(gid)
		if q == none || foreign || !a.visible(r, q) {
			return nil, mad.SAInvalidGID
		}
		p = q
	}
	if hasLID {
		q := n.EndPortOfLID(lid)
		if q == none || p != none && p != q || !a.visible(r, q) {
			return nil, mad.StatusOK // there is none that is both
		}
		p = q
	}
	if p != none {
		return []int32{p}, mad.StatusOK
	}
	for i := range n.Ports {
		if q := int32(i); n.Ports[q].reach && n.Ports[q].known && n.Ports[q].Info.LID != 0 && a.visible(r, q) {
			list = append(list, q)
		}
	}
	return list, mad.StatusOK
}

// between adds the paths from one end port to another that fit a wish.
func (a *administration) between(r *request, w *wish, from, to int32) {
	n := a.sm.live
	f, t := &n.Ports[from], &n.Ports[to]
	want := ib.PKey(0)
	if w.has(mad.PathPKey) {
		want = w.rec.PKey
	}
	key := shareKey(f.PKeys, t.PKeys, want)
	if key == 0 {
		return
	}
	many := max(1<<f.Info.LMC, 1<<t.Info.LMC)
	found := 0
	for i := 0; i < many && found < w.most && len(w.result) <= maxTable; i++ {
		rec := mad.PathRecord{
			ServiceID: w.rec.ServiceID, DGID: a.gid(t.GUID), SGID: a.gid(f.GUID), PKey: key, Reversible: true,
			DLID: t.Info.LID + ib.LID(i&(1<<t.Info.LMC-1)), SLID: f.Info.LID + ib.LID(i&(1<<f.Info.LMC-1)),
		}
		if w.has(mad.PathDLID) {
			rec.DLID = w.rec.DLID
		}
		if w.has(mad.PathSLID) {
			rec.SLID = w.rec.SLID
		}
		if w.has(mad.PathDGID) {
			rec.DGID = w.rec.DGID
		}
		if w.has(mad.PathSGID) {
			rec.SGID = w.rec.SGID
		}
		way, ok := a.follow(from, to, rec.DLID)
		if !ok || !w.fits(&way, &rec) {
			continue
		}
		found++
		w.n++
		w.result = rec.Append(w.result)
	}
}

// fits fills in what a path can carry; false: it is not what was wished.
func (w *wish) fits(way *way, rec *mad.PathRecord) bool {
	if w.has(mad.PathSL) && w.rec.SL != way.sl || w.has(mad.PathQoSClass) && w.rec.QoSClass != 0 || w.has(mad.PathRawTraffic) && w.rec.RawTraffic {
		return false
	}
	mtu, ok := chosen(w.has(mad.PathMTUSelector|mad.PathMTU), w.rec.MTUSelector, int(w.rec.MTU), int(way.mtu))
	if !ok || mtu < 1 {
		return false
	}
	speed, ok := chosen(w.has(mad.PathRateSelector|mad.PathRate), w.rec.RateSelector, mbps[w.rec.Rate&63], mbps[way.rate])
	if !ok {
		return false
	}
	code := way.rate
	if speed != mbps[way.rate] {
		code = rates[speed]
		if w.rec.RateSelector == mad.SelectLess {
			code = below(mbps[w.rec.Rate&63])
		}
	}
	life, ok := lifeChosen(w, int(way.life))
	if !ok || code == 0 {
		return false
	}
	rec.MTUSelector, rec.MTU = mad.SelectExactly, ib.MTU(mtu)
	rec.RateSelector, rec.Rate = mad.SelectExactly, code
	rec.LifeSelector, rec.Life, rec.SL = mad.SelectExactly, uint8(life), way.sl
	return true
}

// below is the fastest rate that is slower.
func below(speed int) (code uint8) {
	for m, c := range rates {
		if m < speed && (code == 0 || m > mbps[code]) {
			code = c
		}
	}
	return code
}

// chosen applies a selector to what there is: a path can be used with less than it can carry.
func chosen(given bool, selector uint8, want, have int) (int, bool) {
	if !given {
		return have, true
	}
	switch selector {
	case mad.SelectGreater:
		return have, have > want
	case mad.SelectLess:
		return min(have, want-1), want > 1
	case mad.SelectExactly:
		return want, have >= want && want > 0
	}
	return have, true
}

// lifeChosen applies a selector to the life time: a packet may be given longer than it needs.
func lifeChosen(w *wish, have int) (int, bool) {
	if !w.has(mad.PathLifeSelector | mad.PathLife) {
		return have, true
	}
	want := int(w.rec.Life)
	switch w.rec.LifeSelector {
	case mad.SelectGreater:
		return max(have, want+1), want < 63
	case mad.SelectLess:
		return have, have < want
	case mad.SelectExactly:
		return want, have <= want
	}
	return have, true
}

// groupPath is the path to a multicast group.
func (a *administration) groupPath(r *request, w *wish, from []int32) {
	g := a.groups[w.rec.DGID]
	if g == nil {
		a.refuse(r, mad.SAInvalidGID)
		return
	}
	for _, f := range from {
		p := &a.sm.live.Ports[f]
		if limitedOrFull(p.PKeys, g.rec.PKey) == 0 || w.has(mad.PathPKey) && w.rec.PKey&0x7fff != g.rec.PKey&0x7fff ||
			w.has(mad.PathDLID) && w.rec.DLID != g.rec.MLID {
			continue
		}
		way := way{mtu: g.rec.MTU, rate: g.rec.Rate, life: g.rec.Life, sl: g.rec.SL}
		rec := mad.PathRecord{DGID: g.rec.MGID, SGID: a.gid(p.GUID), DLID: g.rec.MLID, SLID: p.Info.LID, FlowLabel: g.rec.FlowLabel, HopLimit: g.rec.HopLimit,
			TrafficClass: g.rec.TrafficClass, PKey: g.rec.PKey}
		if w.has(mad.PathSLID) {
			rec.SLID = w.rec.SLID
		}
		if w.fits(&way, &rec) {
			w.result, w.n = rec.Append(w.result), w.n+1
		}
	}
	a.respond(r, w.result, w.n, mad.PathRecordLen)
}

// multiPathRecords answers GetMulti of MultiPathRecord (IBA 15.2.5.20).
func (a *administration) multiPathRecords(r *request) {
	if r.sa.Method != mad.MethodGetMulti {
		a.refuse(r, mad.StatusMethodUnsupported)
		return
	}
	m, err := mad.ParseMultiPathRecord(r.data)
	const needed = mad.MultiSGIDCount | mad.MultiDGIDCount
	switch {
	case !r.has(needed):
		a.refuse(r, mad.SAInsufficientComponents)
		return
	case err != nil || len(m.SGIDs) == 0 || len(m.DGIDs) == 0:
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	w := &wish{rec: m.Path, mask: pathComponents(r.sa.ComponentMask), most: 127}
	if w.has(mad.PathNumPath) && m.Path.NumPath > 0 {
		w.most = int(m.Path.NumPath)
	}
	for _, sg := range m.SGIDs {
		from, status := a.ends(r, true, sg, false, 0)
		if status != mad.StatusOK {
			a.refuse(r, status)
			return
		}
		for _, dg := range m.DGIDs {
			to, status := a.ends(r, true, dg, false, 0)
			if status != mad.StatusOK {
				a.refuse(r, status)
				return
			}
			a.between(r, w, from[0], to[0])
		}
	}
	a.respond(r, w.result, w.n, mad.PathRecordLen)
}

// pathComponents turns the components of a MultiPathRecord into those of a PathRecord.
func pathComponents(mask uint64) (m uint64) {
	for _, c := range [][2]uint64{
		{mad.MultiRawTraffic, mad.PathRawTraffic}, {mad.MultiNumPath, mad.PathNumPath}, {mad.MultiPKey, mad.PathPKey}, {mad.MultiQoSClass, mad.PathQoSClass},
		{mad.MultiSL, mad.PathSL}, {mad.MultiMTUSelector, mad.PathMTUSelector}, {mad.MultiMTU, mad.PathMTU}, {mad.MultiRateSelector, mad.PathRateSelector},
		{mad.MultiRate, mad.PathRate}, {mad.MultiLifeSelector, mad.PathLifeSelector}, {mad.MultiLife, mad.PathLife},
	} {
		if mask&c[0] != 0 {
			m |= c[1]
		}
	}
	return m
}
