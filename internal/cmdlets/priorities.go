package cmdlets

import (
	"errors"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// withPriorities are the adapters that have settings of priorities: those of -InterfaceAlias, or all.
func (r *run) withPriorities() ([]*api.AdapterStatus, error) {
	return r.havePriorities(r.Texts("InterfaceAlias"))
}

// havePriorities are those of the adapters of names that have settings of priorities.
func (r *run) havePriorities(names []string) (out []*api.AdapterStatus, err error) {
	all, err := r.adapters(names)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.QoS != nil {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: none of the adapters has priorities", api.ErrUnsupported)
	}
	return out, nil
}

// setQoS changes settings of priorities of adapters, where words returns any; if those of one make no sense, of none. Adapters that
// cannot have them are named; if that is all, it is an error.
func (r *run) setQoS(action string, list []*api.AdapterStatus, words func(*api.AdapterStatus) ([]string, error)) error {
	var todo []api.QoSRequest
	var names []string
	for _, a := range list {
		w, err := words(a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		if len(w) > 0 {
			todo, names = append(todo, api.QoSRequest{Adapter: a.Name, Settings: w}), append(names, a.Name)
		}
	}
	if len(todo) == 0 || !r.Should(action, strings.Join(names, ", ")) {
		return nil
	}
	var refused []string
	for _, q := range todo {
		err := r.driver.SetQoS(r.Context, q)
		if errors.Is(err, api.ErrUnsupported) {
			refused = append(refused, fmt.Sprintf("%s: %v", q.Adapter, err))
		} else if err != nil {
			return fmt.Errorf("%s: %w", q.Adapter, err)
		}
	}
	if len(refused) == len(list) {
		return errors.New(strings.Join(refused, "; "))
	}
	for _, why := range refused {
		r.Warn("not set: %s", why)
	}
	return nil
}
