package api

import "github.com/softvpi/softvpi/internal/link/impair"

// LineRate is what the adapter's link is limited to, in bit/s on the wire; 0 where it is not, and then nothing
// tells its speed.
func (a *AdapterStatus) LineRate() uint64 {
	if a.Impairment == "" {
		return 0
	}
	set, err := (impair.Impairment{}).Parse(a.Impairment)
	if err != nil {
		return 0 // of a driver that knows more impairments
	}
	return set.Rate
}
