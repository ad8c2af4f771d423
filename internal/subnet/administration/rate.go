package administration

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// rates maps Mb/s to the codes of PathRecord.Rate (IBA 15.2.5.16).
var rates = map[int]uint8{}

// mbps is the inverse of rates, 0 for invalid codes.
var mbps [64]int

// codes is a table of the codes by speed and number of lanes, because hundreds of thousands of answers
// need them.
var codes [mad.SpeedXDR + 1][13]uint8

func init() {
	for code := range mbps {
		if mbps[code] = ib.Rate(code).Mbps(); mbps[code] != 0 {
			rates[mbps[code]] = uint8(code)
		}
	}
	lane := map[mad.Speed]int{mad.SpeedSDR: 2500, mad.SpeedDDR: 5000, mad.SpeedQDR: 10000, mad.SpeedFDR10: 10000, mad.SpeedFDR: 14000,
		mad.SpeedEDR: 25000, mad.SpeedHDR: 50000, mad.SpeedNDR: 100000, mad.SpeedXDR: 200000}
	for speed := range codes {
		for lanes := range codes[speed] {
			codes[speed][lanes] = 2 // what every link supports
			if code := rates[lane[mad.Speed(speed)]*lanes]; code != 0 {
				codes[speed][lanes] = code
			}
		}
	}
}

// rate returns the code of a port's link.
func rate(i *mad.PortInfo) uint8 {
	return codes[i.ActiveSpeed()][mad.Lanes(i.LinkWidthActive)]
}

// slower returns the slower of two rates.
func slower(a, b uint8) uint8 {
	if mbps[b] < mbps[a] {
		return b
	}
	return a
}

// below returns the fastest rate that is slower than speed.
func below(speed int) (code uint8) {
	for m, c := range rates {
		if m < speed && (code == 0 || m > mbps[code]) {
			code = c
		}
	}
	return code
}

// chosen applies a selector to a property of a path: a path can be used at less than its maximum.
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

// lifeChosen applies a selector to the lifetime: a packet may be given more than it needs.
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
