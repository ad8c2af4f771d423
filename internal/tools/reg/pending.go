package reg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// Pending returns the settings of each adapter that wait for its restart.
func (r *running) Pending(ctx context.Context) (map[string][]api.Setting, error) {
	s, err := r.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]api.Setting{}
	for _, a := range s.Adapters {
		if !a.Pending {
			continue
		}
		all, err := r.client.Settings(ctx, a.Name)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if s.Pending {
				out[a.Name] = append(out[a.Name], s)
			}
		}
	}
	return out, nil
}

// pending says, for values that were found or, if a whole key was shown, are unset, what is in force
// instead until an adapter restarts. Without a running driver nothing is in force.
func (q *listing) pending() error {
	store, ok := q.run.store.(interface {
		Pending(context.Context) (map[string][]api.Setting, error)
	})
	if !ok || len(q.found) == 0 {
		return nil
	}
	all, err := store.Pending(q.run.ctx)
	if err != nil {
		return err
	}
	for _, adapter := range slices.Sorted(maps.Keys(all)) {
		for _, s := range all[adapter] {
			if q.has(&s) {
				fmt.Fprintf(q.run.env.Stderr, "note: %s: %s is in force until %q restarts: softvpi adapter restart\n", s.Name, s.Value,
					adapter)
			}
		}
	}
	return nil
}

// has reports whether a setting is among what was found.
func (q *listing) has(s *api.Setting) bool {
	whole := !q.a.has("v") && !q.a.has("ve") && !q.a.has("f")
	p, err := registry.ParsePath(s.Path)
	if err != nil {
		return false
	}
	for _, k := range q.found {
		if !k.Key.Equal(p) {
			continue
		}
		for _, v := range k.Values {
			if strings.EqualFold(strings.TrimPrefix(v.Name, "*"), strings.TrimPrefix(s.Name, "*")) {
				return true
			}
		}
		if whole && s.Stored == nil {
			return true
		}
	}
	return false
}
