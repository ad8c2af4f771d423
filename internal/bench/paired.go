package bench

import (
	"math"
	"slices"
)

// turn adds what was measured in a round, and what of the peer.
func (s samples) turn(v, peer float64) {
	s.add("value", v)
	s.add("peer", peer)
	s.add("ratio", v/peer)
}

// paired completes the row of what took turns with its peer: medians, and the interval in which the true ratio lies with 95 %. The aim, if
// there is one, is of the ratio, and met if all of the interval meets it.
func (s samples) paired(row Row, aim *Target) Row {
	row.Value, row.Low, row.High = s.median("value"), slices.Min(s["value"]), slices.Max(s["value"])
	row.PeerValue, row.Ratio = s.median("peer"), s.median("ratio")
	if row.RatioLow, row.RatioHigh = medianInterval(s["ratio"]); aim != nil {
		met := aim.met(&Row{Ratio: row.RatioLow}) && aim.met(&Row{Ratio: row.RatioHigh})
		row.Target, row.Met = aim, &met
	}
	return row
}

// medianInterval returns between which two of the values the median of what they were drawn from lies, with 95 % or more (the interval
// of the sign test, from order statistics); all of them if there are fewer than 6.
func medianInterval(values []float64) (low, high float64) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return 0, 0
	}
	// 2 P(X < k) <= 5 % for X of the binomial distribution of n coins. Logarithms, as P(X = 0) of a thousand is no number any more.
	k, log, below := 0, -float64(n)*math.Ln2, 0.
	for ; 2*(below+math.Exp(log)) <= 0.05; k++ {
		below += math.Exp(log)
		log += math.Log(float64(n-k) / float64(k+1))
	}
	k = max(k, 1)
	return v[k-1], v[n-k]
}
