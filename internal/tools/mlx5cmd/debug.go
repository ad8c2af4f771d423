package mlx5cmd

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

func (r *run) reset() (report, error) {
	if err := r.only("Name="); err != nil {
		return nil, err
	}
	a, err := r.adapter()
	if err == nil {
		err = r.client.ResetAdapter(r.ctx, a.Name)
	}
	if err != nil {
		return nil, err
	}
	return blocks{list: []block{{title: fmt.Sprintf("Reset of adapter %q", a.Name), adapter: a.Name, fields: []field{{"Action", "reset"}}}},
		notes: []string{done}}, nil
}

func (r *run) stateDump() (report, error) {
	if err := r.only("Name="); err != nil {
		return nil, err
	}
	return r.dump(api.DumpRequest{Kind: api.StateDump})
}

// dumpMeNow implements -Dmn (WinOF-2 24.4, Resiliency, DMN Triggers and APIs).
func (r *run) dumpMeNow() (report, error) {
	r.options = separated(r.options)
	if err := r.only("Name=", "NoMstDump", coreOption+"="); err != nil {
		return nil, err
	}
	qp, err := r.numberOf(coreOption, 24)
	if err != nil {
		return nil, err
	}
	return r.dump(api.DumpRequest{Kind: api.DumpMeNow, NoRegisters: r.has("NoMstDump"), QP: narrow(qp)})
}

func (r *run) dump(q api.DumpRequest) (report, error) {
	a, err := r.adapter()
	if err != nil {
		return nil, err
	}
	d, err := r.client.Dump(r.ctx, a.Name, q)
	if err != nil {
		return nil, asOptions(err)
	}
	b := block{title: fmt.Sprintf("Dump of adapter %q", a.Name), section: string(d.Kind), adapter: a.Name}
	b.add("Folder", d.Directory)
	for i, f := range d.Files {
		b.add(fmt.Sprintf("File[%d]", i), f)
	}
	return blocks{list: []block{b}, notes: []string{done}}, nil
}

func (r *run) resources() (report, error) {
	if err := r.only("Name="); err != nil {
		return nil, err
	}
	return r.each("Resources of adapter", func(b *block, a *api.AdapterStatus) error {
		have, err := r.client.Resources(r.ctx, a.Name)
		for _, o := range have.Objects {
			b.add(o.Name+" allocated", o.Used)
			b.add(o.Name+" max", o.Max)
		}
		for i, k := range have.PKeys {
			b.add(fmt.Sprintf("PKEY[%d]", i), fmt.Sprintf("%04x", k))
		}
		return err
	})
}

// callStats are the statistics of a kind of call; average and longest in microseconds.
type callStats struct {
	Count   uint64  `json:"count"`
	Failed  uint64  `json:"failed"`
	Average float64 `json:"average_us"`
	Longest float64 `json:"longest_us"`
}

func (s callStats) String() string {
	return fmt.Sprintf("%d, %d failed, average %.3f us, longest %.3f us", s.Count, s.Failed, s.Average, s.Longest)
}

func (r *run) commandStats() (report, error) {
	return r.calls("Commands to adapter", func(a *api.AdapterStatus) ([]api.CallStats, error) { return r.client.Commands(r.ctx, a.Name) })
}

func (r *run) requestStats() (report, error) {
	return r.calls("Requests about adapter", func(a *api.AdapterStatus) ([]api.CallStats, error) {
		return r.client.Requests(r.ctx,
			a.Name)
	})
}

func (r *run) calls(title string, ask func(*api.AdapterStatus) ([]api.CallStats, error)) (report, error) {
	if err := r.only("Name="); err != nil {
		return nil, err
	}
	return r.each(title, func(b *block, a *api.AdapterStatus) error {
		list, err := ask(a)
		for _, s := range list {
			b.add(s.Name, callStats{s.Count, s.Failed, float64(s.Total) / 1e3 / float64(max(s.Count, 1)), float64(s.Longest) / 1e3})
		}
		return err
	})
}
