package counters

import (
	"github.com/softvpi/softvpi/internal/catalogue"
)

// ResetRequest asks to reset the counters of a set.
type ResetRequest struct {
	Set     string `json:"set"`               // printed or short name
	Adapter string `json:"adapter,omitempty"` // by name; empty: all
}

// CheckReset checks a reset as far as that is possible without a driver.
func CheckReset(q ResetRequest) error {
	set, ok := catalogue.CounterSetNamed(q.Set)
	if !ok {
		return &PathError{q.Set, "no such counter set", setNames()}
	}
	if set.Reset != catalogue.ResetOnDemand {
		return &PathError{q.Set, "only a restart of the adapter clears this set", resettable()}
	}
	return nil
}

func setNames() []string {
	var all []string
	for i := range catalogue.CounterSets() {
		all = append(all, catalogue.CounterSets()[i].Name)
	}
	return all
}

func resettable() []string {
	var all []string
	for i := range catalogue.CounterSets() {
		if catalogue.CounterSets()[i].Reset == catalogue.ResetOnDemand {
			all = append(all, catalogue.CounterSets()[i].Name)
		}
	}
	return all
}
