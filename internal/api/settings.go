package api

import (
	"context"
	"net/url"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Setting is a key of an adapter with its values as text, in the form in which they are set.
type Setting struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty" doc:"As the device manager shows it."`
	Group       string   `json:"group" doc:"The manuals' table."`
	Path        string   `json:"path" doc:"The registry key that holds it."`
	Type        string   `json:"type"`
	Value       string   `json:"value" doc:"In force: what the adapter runs with."`
	Automatic   bool     `json:"automatic" doc:"The value in force is derived."`
	Stored      *string  `json:"stored,omitempty" doc:"In the registry; absent: not set."`
	Default     string   `json:"default"`
	Allowed     string   `json:"allowed"`
	Choices     []Choice `json:"choices,omitempty"`
	Unit        string   `json:"unit,omitempty"`
	Effect      string   `json:"effect" enum:"at once,at restart"`
	Status      string   `json:"status" enum:"built,stored only,read only"`
	UI          bool     `json:"ui" doc:"The device manager shows it."`
	Pending     bool     `json:"pending" doc:"What is stored takes effect at the next restart."`
	Problem     string   `json:"problem,omitempty" doc:"Why what is stored does not count."`
	Description string   `json:"description"`
}

// Choice is one of the values that a Setting can have.
type Choice struct {
	Value   string `json:"value"`
	Name    string `json:"name"`
	Meaning string `json:"meaning,omitempty"`
}

// CatalogueKey is a registry key as the catalogue declares it.
type CatalogueKey struct {
	Name        string            `json:"name"`
	Aliases     []string          `json:"aliases,omitempty"`
	Title       string            `json:"title,omitempty"`
	Group       string            `json:"group"`
	Place       string            `json:"place" doc:"The key that holds it, with <nn> for the number of the adapter."`
	Generations []string          `json:"generations"`
	Type        string            `json:"type"`
	Defaults    map[string]string `json:"defaults" doc:"By generation."`
	Allowed     string            `json:"allowed"`
	Choices     []Choice          `json:"choices,omitempty"`
	Unit        string            `json:"unit,omitempty"`
	Effect      string            `json:"effect" enum:"at once,at restart"`
	Status      string            `json:"status" enum:"built,stored only,read only"`
	UI          bool              `json:"ui"`
	Description string            `json:"description"`
	Sources     []string          `json:"sources"`
}

// EffectName says when a change of the key takes effect.
func EffectName(k catalogue.Key) string {
	if k.Effect == catalogue.AtOnce {
		return "at once"
	}
	return "at restart"
}

// StatusName says how far what the key controls is implemented.
func StatusName(k catalogue.Key) string {
	return map[catalogue.Status]string{catalogue.Built: "built", catalogue.StoredOnly: "stored only",
		catalogue.ReadOnly: "read only", catalogue.Inherent: "switches nothing"}[k.Status]
}

// Choices returns the key's choices.
func Choices(k catalogue.Key) []Choice {
	var out []Choice
	for _, c := range k.Choices {
		out = append(out, Choice{k.Format(catalogue.Value{Type: k.Type, Number: c.Value}), c.Name, c.Meaning})
	}
	return out
}

// DefaultText returns a key's default as text; for an automatic one, what it is derived from.
func DefaultText(k catalogue.Key, g catalogue.Generation) string {
	d := k.Default(g, false)
	if v, ok := d.Value(k); ok {
		return k.Format(v)
	}
	return d.Text
}

// GenerationName returns mlx5 or mlx4.
func GenerationName(g catalogue.Generation) string {
	if g == catalogue.MLX4 {
		return "mlx4"
	}
	return "mlx5"
}

// Settings returns the keys of an adapter with their values in force.
func (c *Client) Settings(ctx context.Context, adapter string) (list []Setting, err error) {
	err = c.call(ctx, "GET", adapterURL(adapter, "/settings"), nil, nil, &list)
	return list, err
}

// Set sets a key of an adapter from text.
func (c *Client) Set(ctx context.Context, adapter, key, value string) (n Notices, err error) {
	q := map[string]string{"value": value}
	err = c.call(ctx, "PUT", adapterURL(adapter, "/settings/"+url.PathEscape(key)), nil, q, &n)
	return n, err
}

// Reset resets a key of an adapter to its default.
func (c *Client) Reset(ctx context.Context, adapter, key string) (n Notices, err error) {
	err = c.call(ctx, "DELETE", adapterURL(adapter, "/settings/"+url.PathEscape(key)), nil, nil, &n)
	return n, err
}

// Keys returns all registry keys that the catalogue declares.
func (c *Client) Keys(ctx context.Context) (list []CatalogueKey, err error) {
	err = c.call(ctx, "GET", "/catalogue/keys", nil, nil, &list)
	return list, err
}
