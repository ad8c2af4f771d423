package api

import "github.com/softvpi/softvpi/internal/link/impair"

// LineRate returns the rate that the adapter's link is limited to, in bit/s on the wire. It is 0 if there
// is no limit; then the speed is unknown.
func (a *AdapterStatus) LineRate() uint64 {
	if a.Impairment == "" {
		return 0
	}
	set, err := (impair.Impairment{}).Parse(a.Impairment)
	if err != nil {
		return 0 // from a driver that knows more impairments
	}
	return set.Rate
}
