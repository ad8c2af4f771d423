package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// chosenSettings returns the keys of an adapter that -DisplayName and -RegistryKeyword mean.
func (r *run) chosenSettings(a *api.AdapterStatus) (out []api.Setting, err error) {
	list, err := r.driver.Settings(r.Context, a.Name)
	if err != nil {
		return nil, err
	}
	titles, names := r.Texts("DisplayName"), r.Texts("RegistryKeyword")
	for _, s := range list {
		// A * begins the names of standard keys; it is no wildcard there.
		byName := slices.ContainsFunc(names, func(n string) bool {
			return strings.EqualFold(n, s.Name) || strings.ContainsAny(strings.TrimPrefix(n, "*"), "*?") && powershell.Like(s.Name, n) || n == "*"
		})
		byTitle := s.Title != "" && slices.ContainsFunc(titles, func(t string) bool { return powershell.Like(s.Title, t) })
		if byName || byTitle || len(titles) == 0 && len(names) == 0 {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		field, value := "-RegistryKeyword", strings.Join(names, ", ")
		if len(titles) > 0 {
			field, value = "-DisplayName", strings.Join(titles, ", ")
		}
		return nil, api.Wrong(field, fmt.Sprintf("%q", value), "what Get-NetAdapterAdvancedProperty -AllProperties lists")
	}
	return out, nil
}

func (r *run) getProperties() error {
	list, err := r.named()
	if err != nil {
		return err
	}
	for _, a := range list {
		settings, err := r.chosenSettings(a)
		if err != nil {
			return err
		}
		for _, s := range settings {
			if !s.UI && !r.Bool("AllProperties") && !r.Given("RegistryKeyword") {
				continue
			}
			shown := s.Value
			var valid []any
			for _, c := range s.Choices {
				valid = append(valid, c.Value)
				if c.Value == s.Value {
					shown = c.Name
				}
			}
			stored := s.Value
			if s.Stored != nil {
				stored = *s.Stored
			}
			r.Emit(powershell.NewObject("MSFT_NetAdapterAdvancedPropertySettingData", "Name", "DisplayName", "DisplayValue", "RegistryKeyword",
				"RegistryValue").With("Name", a.Name).With("DisplayName", s.Title).With("DisplayValue", shown).With("RegistryKeyword", s.Name).
				With("RegistryValue", []any{stored}).With("DefaultRegistryValue", s.Default).With("ValidRegistryValues", valid).
				With("Allowed", s.Allowed).With("Status", s.Status).With("Pending", s.Pending))
		}
	}
	return nil
}

// choiceValue returns the value of a choice that the device manager shows by a name.
func choiceValue(s api.Setting, shown string) (string, error) {
	var names []string
	for _, c := range s.Choices {
		if strings.EqualFold(c.Name, shown) || c.Value == shown {
			return c.Value, nil
		}
		names = append(names, c.Name)
	}
	if len(s.Choices) == 0 {
		return shown, nil
	}
	return "", api.Wrong("-DisplayValue of "+s.Name, fmt.Sprintf("%q", shown), strings.Join(names, ", "))
}

func (r *run) setProperties() error {
	if !r.Given("DisplayName") && !r.Given("RegistryKeyword") {
		return &powershell.ParameterError{Parameter: "-RegistryKeyword is missing", Allowed: "-RegistryKeyword or -DisplayName"}
	}
	given := append(r.Texts("RegistryValue"), r.Texts("DisplayValue")...)
	if len(given) != 1 {
		return &powershell.ParameterError{Parameter: "-RegistryValue", Value: strings.Join(given, ", "), Allowed: "one value, or one of -DisplayValue"}
	}
	return r.eachSetting(func(s api.Setting) (*string, error) {
		value := given[0]
		if r.Given("DisplayValue") {
			v, err := choiceValue(s, value)
			if err != nil {
				return nil, err
			}
			value = v
		}
		return &value, nil
	})
}

func (r *run) resetProperties() error {
	if !r.Given("DisplayName") && !r.Given("RegistryKeyword") {
		return &powershell.ParameterError{Parameter: "-DisplayName is missing", Allowed: "a name, or * for all"}
	}
	return r.eachSetting(func(api.Setting) (*string, error) { return nil, nil })
}

// eachSetting sets the chosen keys of the adapters, and restarts those that have to.
func (r *run) eachSetting(value func(api.Setting) (*string, error)) error {
	list, err := r.named()
	if err != nil {
		return err
	}
	for _, a := range list {
		settings, err := r.chosenSettings(a)
		if err != nil {
			return err
		}
		restart := false
		for _, s := range settings {
			v, err := value(s)
			if err != nil {
				return err
			}
			if v == nil && s.Stored == nil || !r.Should(r.Cmdlet.Name+" "+s.Name, a.Name) {
				continue
			}
			needs, err := r.setKey(a, s.Name, v)
			if err != nil {
				return err
			}
			restart = restart || needs
		}
		if restart {
			if err := r.restart(a); err != nil {
				return err
			}
		}
	}
	return nil
}
