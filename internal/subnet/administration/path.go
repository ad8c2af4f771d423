package administration

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// way holds the properties of a path from one end port to a LID of another.
type way struct {
	mtu  ib.MTU
	rate uint8
	life uint8
	sl   uint8
}

// mtuOf returns a port's MTU: for port 0 of a switch its capability, for others that of its link.
func mtuOf(p *topology.Port) ib.MTU {
	if p.Num == 0 {
		return p.Info.MTUCap
	}
	return p.Info.NeighborMTU
}

// follow follows the path that packets take, port by port; false: they do not arrive.
func (a *SA) follow(from, to int32, lid ib.LID) (w way, ok bool) {
	n, t := a.live, &a.routes
	from, to = n.Base(from), n.Base(to)
	at := &n.Ports[from]
	w = way{mtu: mtuOf(at), rate: rate(&at.Info)}
	if from == to {
		return w, true
	}
	w.life = a.cfg.PacketLife
	take := func(p int32) {
		w.mtu, w.rate = min(w.mtu, mtuOf(&n.Ports[p])), slower(w.rate, rate(&n.Ports[p].Info))
	}
	take(to)
	p := from
	if !n.IsSwitch(from) {
		if p = at.Peer; p == topology.None {
			return w, false
		}
		if p == to {
			return w, true
		}
	}
	sw := t.SwitchOf[n.Ports[p].Node]
	if sw == topology.None {
		return w, false
	}
	w.sl = t.SL(sw, lid)
	for range len(n.Switches) + 1 {
		node := &n.Nodes[n.Ports[p].Node]
		sw := t.SwitchOf[n.Ports[p].Node]
		if sw == topology.None || int(lid) >= len(t.Table(sw)) {
			return w, false
		}
		out := node.First + int32(t.Table(sw)[lid])
		if out == to {
			return w, true
		}
		if out > node.First+int32(node.Info.NumPorts) || n.Ports[out].Peer == topology.None || out == node.First {
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
	mask   uint64 // components, as for a PathRecord
	most   int    // maximum of paths per pair
	hops   uint8  // HopLimit of the result, above 0 for paths to other subnets
	result []byte
	n      int
}

func (w *wish) has(c uint64) bool { return w.mask&c == c }

// pathRecords answers Get and GetTable of PathRecord (IBA 15.2.5.16).
func (a *SA) pathRecords(r *request) {
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
	to, status := a.farEnds(r, w)
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

// ends returns the end ports for a GID and a LID in a request: all if neither is given.
func (a *SA) ends(r *request, hasGID bool, gid ib.GID, hasLID bool, lid ib.LID) (list []int32, status uint16) {
	n := a.live
	p := topology.None
	if hasGID {
		q, foreign := a.portOfGID(gid)
		if q == topology.None || foreign || !a.visible(r, q) {
			return nil, mad.SAInvalidGID
		}
		p = q
	}
	if hasLID {
		q := n.EndPortOfLID(lid)
		if q == topology.None || p != topology.None && p != q || !a.visible(r, q) {
			return nil, mad.StatusOK // no port has both
		}
		p = q
	}
	if p != topology.None {
		return []int32{p}, mad.StatusOK
	}
	return a.allVisible(r), mad.StatusOK
}

// farEnds returns the end ports to which paths are wanted: for a GID of another subnet the router towards
// it.
func (a *SA) farEnds(r *request, w *wish) (list []int32, status uint16) {
	if !w.has(mad.PathDGID) {
		return a.ends(r, false, w.rec.DGID, w.has(mad.PathDLID), w.rec.DLID)
	}
	_, foreign := a.portOfGID(w.rec.DGID)
	if !foreign {
		return a.ends(r, true, w.rec.DGID, w.has(mad.PathDLID), w.rec.DLID)
	}
	p := a.routerTo(binary.BigEndian.Uint64(w.rec.DGID[:]))
	if p == topology.None || !a.visible(r, p) {
		return nil, mad.SAInvalidGID
	}
	if w.has(mad.PathDLID) && a.live.EndPortOfLID(w.rec.DLID) != p {
		return nil, mad.StatusOK
	}
	w.hops = 255
	return []int32{p}, mad.StatusOK
}

// between adds the paths from one end port to another that match the wish.
func (a *SA) between(r *request, w *wish, from, to int32) {
	n := a.live
	f, t := &n.Ports[from], &n.Ports[to]
	want := ib.PKey(0)
	if w.has(mad.PathPKey) {
		want = w.rec.PKey
	}
	key := partition.Shared(f.PKeys, t.PKeys, want)
	if key == 0 {
		return
	}
	many := max(1<<f.Info.LMC, 1<<t.Info.LMC)
	found := 0
	for i := 0; i < many && found < w.most && len(w.result) <= maxTable; i++ {
		rec := mad.PathRecord{
			ServiceID: w.rec.ServiceID, DGID: a.gid(t.GUID), SGID: a.gid(f.GUID), PKey: key, Reversible: true, HopLimit: w.hops,
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
		if q := a.cfg.Policy; q != nil && a.routes.Lanes <= 1 {
			way.sl = q.level(w, f.GUID, t.GUID)
		}
		if !ok || !w.fits(&way, &rec) {
			continue
		}
		found++
		w.n++
		w.result = rec.Append(w.result)
	}
}

// fits fills in the properties of a path; false: it does not match the wish.
func (w *wish) fits(way *way, rec *mad.PathRecord) bool {
	if w.has(mad.PathSL) && w.rec.SL != way.sl || w.has(mad.PathQoSClass) && w.rec.QoSClass != 0 || w.has(mad.PathRawTraffic) &&
		w.rec.RawTraffic {
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

// groupPath answers with the path to a multicast group.
func (a *SA) groupPath(r *request, w *wish, from []int32) {
	g := a.groups[w.rec.DGID]
	if g == nil {
		a.refuse(r, mad.SAInvalidGID)
		return
	}
	for _, f := range from {
		p := &a.live.Ports[f]
		if partition.Find(p.PKeys, g.rec.PKey) == 0 || w.has(mad.PathPKey) && w.rec.PKey&0x7fff != g.rec.PKey&0x7fff ||
			w.has(mad.PathDLID) && w.rec.DLID != g.rec.MLID {
			continue
		}
		way := way{mtu: g.rec.MTU, rate: g.rec.Rate, life: g.rec.Life, sl: g.rec.SL}
		rec := mad.PathRecord{DGID: g.rec.MGID, SGID: a.gid(p.GUID), DLID: g.rec.MLID, SLID: p.Info.LID, FlowLabel: g.rec.FlowLabel,
			HopLimit:     g.rec.HopLimit,
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
