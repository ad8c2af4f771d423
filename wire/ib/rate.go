package ib

// Rate is the code of a path's speed: the Rate of a PathRecord (IBA 15.2.5.16), the static rate of an address vector (enum ibv_rate).
type Rate uint8

// RateAny limits nothing beside the port's own speed.
const RateAny Rate = 0

// rates are the speeds of the codes in Mb/s, in the round numbers of the specification.
var rates = [...]int{
	2: 2500, 3: 10000, 4: 30000, 5: 5000, 6: 20000, 7: 40000, 8: 60000, 9: 80000, 10: 120000, 11: 14000, 12: 56000, 13: 112000,
	14: 168000, 15: 25000, 16: 100000, 17: 200000, 18: 300000, 19: 28000, 20: 50000, 21: 400000, 22: 600000, 23: 800000, 24: 1200000,
	25: 1600000, 26: 2400000,
}

// Rates is how many codes there are, from 0 on, some of them without a speed.
const Rates = len(rates)

// Mbps returns the speed in Mb/s; 0 for RateAny and what is no code.
func (r Rate) Mbps() int {
	if int(r) >= len(rates) {
		return 0
	}
	return rates[r]
}
