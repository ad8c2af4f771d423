package collector

import (
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
)

// Sets returns the counter sets with their current instances.
func (c *Collector) Sets() []counters.Set {
	adapters := c.cfg.Read()
	out := make([]counters.Set, 0, len(catalogue.CounterSets()))
	for i := range catalogue.CounterSets() {
		set := &catalogue.CounterSets()[i]
		s := counters.Set{Name: set.Name, Short: set.Short, Aliases: set.Aliases, Description: set.Description,
			Resettable: set.Reset == catalogue.ResetOnDemand, Instances: []string{}}
		for j := range adapters {
			for _, in := range c.instances(set, adapters, j) {
				s.Instances = append(s.Instances, in.name)
			}
		}
		for j := range set.Counters {
			k := &set.Counters[j]
			s.Counters = append(s.Counters, counters.Counter{
				Name: k.Name, Short: k.Short, Kind: kindName(k.Kind), Unit: k.Unit, Description: k.Description, Counted: k.Counted(),
				Generations: generationNames(set, j),
			})
		}
		out = append(out, s)
	}
	return out
}

func kindName(k catalogue.CounterKind) string {
	return [...]string{catalogue.Total: "total", catalogue.Rate: "rate", catalogue.Level: "level", catalogue.Ratio: "ratio"}[k]
}

func generationNames(set *catalogue.CounterSet, i int) []string {
	all := []string{}
	if set.Has(i, catalogue.MLX5) {
		all = append(all, "mlx5")
	}
	if set.Has(i, catalogue.MLX4) {
		all = append(all, "mlx4")
	}
	return all
}
