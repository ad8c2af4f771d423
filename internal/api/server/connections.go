package server

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// orders compare connections by one field.
var orders = map[string]func(a, b *api.Connection) int{
	"adapter":       func(a, b *api.Connection) int { return cmp.Compare(a.Adapter, b.Adapter) },
	"number":        func(a, b *api.Connection) int { return cmp.Compare(a.Number, b.Number) },
	"type":          func(a, b *api.Connection) int { return cmp.Compare(a.Type, b.Type) },
	"state":         func(a, b *api.Connection) int { return cmp.Compare(a.State, b.State) },
	"owner":         func(a, b *api.Connection) int { return cmp.Compare(a.Owner, b.Owner) },
	"pid":           func(a, b *api.Connection) int { return cmp.Compare(a.PID, b.PID) },
	"peer":          func(a, b *api.Connection) int { return a.Peer.Compare(b.Peer) },
	"remote_number": func(a, b *api.Connection) int { return cmp.Compare(a.RemoteNumber, b.RemoteNumber) },
	"path":          func(a, b *api.Connection) int { return cmp.Compare(a.QPStatus.Path, b.QPStatus.Path) },
	"mtu":           func(a, b *api.Connection) int { return cmp.Compare(a.MTU, b.MTU) },
	"rate":          func(a, b *api.Connection) int { return cmp.Compare(a.LeastRate(), b.LeastRate()) },
	"send_posted":   func(a, b *api.Connection) int { return cmp.Compare(a.SendPosted, b.SendPosted) },
	"recv_posted":   func(a, b *api.Connection) int { return cmp.Compare(a.RecvPosted, b.RecvPosted) },
}

// page filters and sorts the connections of a status and cuts out the page that was asked for.
func page(q *api.ConnectionQuery, s api.Status) (api.Connections, error) {
	if q.Adapter != "" {
		if _, err := findAdapter(s.Adapters, q.Adapter); err != nil {
			return api.Connections{}, err
		}
	}
	var all []api.Connection
	text := strings.ToLower(q.Search)
	for i := range s.Adapters {
		a := &s.Adapters[i]
		if q.Adapter != "" && q.Adapter != a.Name {
			continue
		}
		for _, qp := range a.QPs {
			if c := (api.Connection{Adapter: a.Name, QPStatus: qp}); text == "" || holds(&c, text) {
				all = append(all, c)
			}
		}
	}
	by := orders[cmp.Or(q.Sort, "number")]
	slices.SortStableFunc(all, func(a, b api.Connection) int {
		c := by(&a, &b)
		if q.Order == "down" {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.Adapter, b.Adapter), cmp.Compare(a.Number, b.Number))
	})
	from := min(q.Offset, len(all))
	to := len(all)
	if q.Limit > 0 {
		to = min(from+q.Limit, to)
	}
	return api.Connections{Total: len(all), Items: append([]api.Connection{}, all[from:to]...)}, nil
}

// holds reports whether a field of a connection, as displayed, contains the text, which is in lower case.
func holds(c *api.Connection, text string) bool {
	for _, f := range []string{
		c.Adapter, strconv.FormatUint(uint64(c.Number), 10), fmt.Sprintf("%#x", c.Number), c.Type, c.State, c.Owner,
		strconv.Itoa(c.PID), strings.ToLower(c.PeerName()), strconv.FormatUint(uint64(c.RemoteNumber), 10), c.QPStatus.Path,
	} {
		if strings.Contains(strings.ToLower(f), text) {
			return true
		}
	}
	return false
}

func findAdapter(list []api.AdapterStatus, name string) (*one[api.AdapterStatus], error) {
	names := make([]string, len(list))
	for i := range list {
		if list[i].Name == name {
			return body(list[i]), nil
		}
		names[i] = strconv.Quote(list[i].Name)
	}
	return nil, api.Wrong("adapter", strconv.Quote(name), strings.Join(names, ", "))
}
