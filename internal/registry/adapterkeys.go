package registry

import "github.com/softvpi/softvpi/internal/catalogue"

// SetKey returns the changes that set a key of the adapter, given by name or alias, from text; nil: back
// to the default. If both the adapter and the driver have the key, it is the adapter's. Values under other
// spellings are deleted. No changes: the adapter has no such key. Errors are *catalogue.ValueError.
func (a Adapter) SetKey(name string, value *string) ([]Change, error) {
	var changes []Change
	keys := catalogue.LookupFor(name, a.Target())
	for _, k := range keys {
		if k.Base != keys[0].Base {
			break // a place of lower precedence
		}
		for _, spelling := range spellings(k) {
			changes = append(changes, Change{Kind: DeleteValue, Key: a.Place(k), Value: Value{Name: spelling}, Lenient: true})
		}
		if value == nil {
			continue
		}
		v, err := k.Parse(*value)
		if err != nil {
			return nil, err
		}
		changes = append(changes, Change{Kind: SetValue, Key: a.Place(k), Value: FromCatalogue(k, v)})
	}
	return changes, nil
}
