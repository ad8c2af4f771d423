package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// adapterName is the parameter that names adapters, with wildcards.
func adapterName(mandatory bool) powershell.Param {
	return powershell.Param{Name: "Name", Aliases: []string{"InterfaceAlias", "ifAlias"}, Kind: powershell.Strings, Position: 1,
		Mandatory: mandatory, Piped: true, Help: "The adapters, by their names, with wildcards."}
}

// interfaceAlias is the parameter of commands that concern all adapters unless it is given.
func interfaceAlias() powershell.Param {
	return powershell.Param{Name: "InterfaceAlias", Aliases: []string{"ifAlias"}, Kind: powershell.Strings,
		Help: "Only these adapters, with wildcards; all without it."}
}

// ifIndex is the number of an adapter's interface.
func ifIndex(a *api.AdapterStatus) int64 { return int64(a.Index) + 1 }

// adapters returns the adapters of names with wildcards; all of them if there is no name.
func (r *run) adapters(names []string) ([]*api.AdapterStatus, error) {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return nil, err
	}
	var out []*api.AdapterStatus
	add := func(a *api.AdapterStatus) {
		if !slices.ContainsFunc(out, func(b *api.AdapterStatus) bool { return b.Name == a.Name }) {
			out = append(out, a)
		}
	}
	if len(names) == 0 {
		names = []string{"*"}
	}
	for _, n := range names {
		if a, err := st.Adapter("-Name", n); err == nil {
			add(a)
			continue
		}
		found := false
		for i := range st.Adapters {
			if powershell.Like(st.Adapters[i].Name, n) {
				add(&st.Adapters[i])
				found = true
			}
		}
		if !found && !strings.ContainsAny(n, "*?") {
			_, err := st.Adapter("-Name", n)
			return nil, err
		}
	}
	return out, nil
}

// named are the adapters of -Name.
func (r *run) named() ([]*api.AdapterStatus, error) { return r.adapters(r.Texts("Name")) }

// setKey sets a key of an adapter; nil: back to its default. It reports whether the adapter has to restart for it.
func (r *run) setKey(a *api.AdapterStatus, key string, value *string) (restart bool, err error) {
	list, err := r.driver.Settings(r.Context, a.Name)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(list, func(s api.Setting) bool { return strings.EqualFold(s.Name, key) })
	if i < 0 {
		return false, fmt.Errorf("%w: adapter %q has no key %s", api.ErrUnsupported, a.Name, key)
	}
	s := list[i]
	if s.Status == "stored only" {
		r.Warn("%s of %q is stored; nothing acts on it yet", s.Name, a.Name)
	}
	if value == nil {
		_, err = r.driver.Reset(r.Context, a.Name, s.Name)
	} else {
		_, err = r.driver.Set(r.Context, a.Name, s.Name, *value)
	}
	changed := value == nil || s.Value != *value
	return changed && s.Effect == "at restart", err
}

// restart restarts an adapter whose keys take effect then, unless -NoRestart says that this is for later.
func (r *run) restart(a *api.AdapterStatus) error {
	if r.Bool("NoRestart") {
		r.Warn("what was set of %q takes effect when it restarts", a.Name)
		return nil
	}
	if !a.Enabled {
		return nil
	}
	r.Verbose("adapter %q restarts", a.Name)
	return r.driver.RestartAdapter(r.Context, a.Name)
}

// noRestart is the parameter of commands that restart adapters.
func noRestart() powershell.Param {
	return powershell.Param{Name: "NoRestart", Kind: powershell.Switch, Help: "What is set takes effect when the adapter restarts for another reason."}
}
