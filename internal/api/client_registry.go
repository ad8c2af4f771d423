package api

import (
	"context"
	"net/url"

	"github.com/softvpi/softvpi/internal/registry"
)

// LoadRegistry returns a copy of the whole registry.
func (c *Client) LoadRegistry(ctx context.Context) (*registry.Registry, error) {
	var keys []RegistryKey
	if err := c.call(ctx, "GET", "/registry/keys", url.Values{"path": {registry.Root}, "recurse": {"true"}}, nil, &keys); err != nil {
		return nil, err
	}
	var changes []registry.Change
	for _, k := range keys {
		p, err := registry.ParsePath(k.Path)
		if err != nil {
			return nil, err
		}
		changes = append(changes, registry.Change{Kind: registry.CreateKey, Key: p})
		for _, v := range k.Values {
			value, err := v.Registry()
			if err != nil {
				return nil, err
			}
			changes = append(changes, registry.Change{Kind: registry.SetValue, Key: p, Value: value})
		}
	}
	r := registry.NewVolatile("a copy of the driver's")
	return r, r.Apply(changes...)
}

// ChangeRegistry makes changes, all or none.
func (c *Client) ChangeRegistry(ctx context.Context, changes []registry.Change, unchecked bool) ([]registry.Notice, error) {
	q := RegistryChanges{Changes: make([]RegistryChange, len(changes)), Unchecked: unchecked}
	for i, x := range changes {
		q.Changes[i] = fromChange(x)
	}
	var n Notices
	err := c.call(ctx, "POST", "/registry/changes", nil, q, &n)
	return n.Notices, err
}
