package server

import (
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

func fromKey(k registry.Key) api.RegistryKey {
	out := api.RegistryKey{Path: k.Path.String(), Values: make([]api.RegistryValue, 0, len(k.Values)),
		Subkeys: make([]string, 0, len(k.Subkeys))}
	for _, v := range k.Values {
		out.Values = append(out.Values, api.NewRegistryValue(v))
	}
	for _, s := range k.Subkeys {
		out.Subkeys = append(out.Subkeys, s.String())
	}
	return out
}

// fromCatalogue converts a key to its form in the interface.
func fromCatalogue(k catalogue.Key) api.CatalogueKey {
	out := api.CatalogueKey{
		Name: k.Name, Aliases: k.Aliases, Title: k.Title, Group: string(k.Group), Type: k.Type.String(), Defaults: map[string]string{},
		Allowed: k.Allowed(), Choices: api.Choices(k), Unit: k.Unit, Effect: api.EffectName(k), Status: api.StatusName(k), UI: k.UI,
		Description: k.Description,
	}
	g := catalogue.MLX5
	for _, x := range []catalogue.Generation{catalogue.MLX4, catalogue.MLX5} {
		if k.Generations&x != 0 {
			out.Generations = append(out.Generations, api.GenerationName(x))
			out.Defaults[api.GenerationName(x)] = api.DefaultText(k, x)
			g = x
		}
	}
	out.Place = placeText(k.Place(g, 0))
	for _, s := range k.Sources {
		out.Sources = append(out.Sources, s.Manual+", "+s.Section)
	}
	return out
}

// placeText returns a place in general form, for any adapter.
func placeText(p catalogue.Place) string {
	text := p.String()
	if p.Base != catalogue.AdapterClass && p.Base != catalogue.DeviceClass {
		return text
	}
	const number = `}\0000`
	if i := len(text) - len(p.Path); p.Path != "" {
		return text[:i-1-len(number)] + `}\<nn>\` + p.Path
	}
	return text[:len(text)-len(number)] + `}\<nn>`
}
