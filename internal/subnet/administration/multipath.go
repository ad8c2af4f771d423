package administration

import (
	"github.com/softvpi/softvpi/wire/mad"
)

// multiPathRecords answers GetMulti of MultiPathRecord (IBA 15.2.5.20).
func (a *SA) multiPathRecords(r *request) {
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
	r.sa.AttributeID = mad.AttrPathRecord // the records in the response are of this kind (IBA 15.2.5.20)
	a.respond(r, w.result, w.n, mad.PathRecordLen)
}

// pathComponents converts the components of a MultiPathRecord to those of a PathRecord.
func pathComponents(mask uint64) (m uint64) {
	for _, c := range [][2]uint64{
		{mad.MultiRawTraffic, mad.PathRawTraffic}, {mad.MultiNumPath, mad.PathNumPath}, {mad.MultiPKey, mad.PathPKey},
		{mad.MultiQoSClass, mad.PathQoSClass},
		{mad.MultiSL, mad.PathSL}, {mad.MultiMTUSelector, mad.PathMTUSelector}, {mad.MultiMTU, mad.PathMTU},
		{mad.MultiRateSelector, mad.PathRateSelector},
		{mad.MultiRate, mad.PathRate}, {mad.MultiLifeSelector, mad.PathLifeSelector}, {mad.MultiLife, mad.PathLife},
	} {
		if mask&c[0] != 0 {
			m |= c[1]
		}
	}
	return m
}
