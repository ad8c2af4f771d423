package mlxtool

import (
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
)

// keys creates a table of the keys of each requested interface.
func (r *run) keys(fields []string, empty string, add func(*table, *api.AdapterStatus, *api.Setting)) (report, error) {
	return r.perInterface(func(a *api.AdapterStatus) (table, error) {
		settings, err := r.client.Settings(r.ctx, a.Name)
		if err != nil {
			return table{}, err
		}
		t := table{Label: "Interface", Name: a.Name, Fields: fields, Empty: empty}
		for i := range settings {
			add(&t, a, &settings[i])
		}
		return t, nil
	})
}

func (r *run) keysInForce() (report, error) {
	return r.keys([]string{"Registry Key", "Current", "Source", "Status"}, "no keys", func(t *table, _ *api.AdapterStatus, s *api.Setting) {
		source := "Default"
		if s.Stored != nil && s.Problem == "" && !s.Pending {
			source = "Registry"
		}
		t.add(s.Name, s.Value, source, s.Status)
	})
}

func (r *run) keysThatDiffer() (report, error) {
	return r.keys([]string{"Registry Key", "Registry", "Driver", "Differ", "Reason"}, "no keys are set in the registry",
		func(t *table, _ *api.AdapterStatus, s *api.Setting) {
			if s.Stored == nil && !s.Pending {
				return
			}
			stored := notKnown
			if s.Stored != nil {
				stored = *s.Stored
			}
			reason := notKnown
			switch {
			case s.Problem != "":
				reason = s.Problem
			case s.Pending:
				reason = "takes effect at the next restart"
			case s.Status == "stored only":
				reason = "nothing acts on the key yet"
			}
			t.add(s.Name, stored, s.Value, s.Pending || s.Problem != "", reason)
		})
}

func (r *run) keyLimits() (report, error) {
	return r.keys([]string{"Registry Key", "Default", "Min", "Max", "Allowed"}, "no keys",
		func(t *table, a *api.AdapterStatus, s *api.Setting) {
			least, most := notKnown, notKnown
			if k, ok := declared(a, s); ok && k.Numeric() {
				from, to := k.Limits()
				least, most = number(k, from), number(k, to)
			}
			t.add(s.Name, s.Default, least, most, s.Allowed)
		})
}

// number returns a limit in the notation of the key's values.
func number(k catalogue.Key, n uint64) any {
	if k.Hex {
		return "0x" + strconv.FormatUint(n, 16)
	}
	return n
}

// declared returns the catalogue's declaration of a setting.
func declared(a *api.AdapterStatus, s *api.Setting) (catalogue.Key, bool) {
	place, err := catalogue.ParsePath(s.Path)
	for _, k := range catalogue.LookupFor(s.Name, catalogue.Target{Generation: a.Class()}) {
		if err == nil && k.Name == s.Name && k.In(place) {
			return k, true
		}
	}
	return catalogue.Key{}, false
}
