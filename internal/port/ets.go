package port

import "github.com/softvpi/softvpi/internal/qos"

// TrafficOf returns how a port divides its wire by the classes of an ETS, each of which sends at most at its rate, in bytes of frames
// in a second; 0: no limit. Of the classes that share, one with a bandwidth of 0 % counts as one with 1 %: it is the last, and does
// not starve.
func TrafficOf(e *qos.ETS, rates [qos.Classes]uint64) Traffic {
	t := Traffic{Class: e.Class, Rate: rates}
	for c, a := range e.Algorithm {
		if a == qos.Strict {
			t.Strict |= 1 << c
			continue
		}
		t.Weight[c] = e.Bandwidth[c]
	}
	return t
}
