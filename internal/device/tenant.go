package device

import "github.com/softvpi/softvpi/internal/command"

// Tenant returns the name of a program's virtual function, and the index of the adapter at whose port it is; ok is false if it has none.
func (c *Client) Tenant() (name string, owner uint32, ok bool) {
	if c.only == nil {
		return "", 0, false
	}
	return c.tenant, c.only.cfg.virtualOf, true
}

// sees reports whether a program may know of an adapter: of its virtual function alone if it has one, else of none.
func (c *Client) sees(a *adapter) bool {
	if c.only != nil {
		return a == c.only || c.interfaceOf(a)
	}
	return !a.tenants() && !a.removed
}

// interfaceOf reports whether an adapter is a VLAN interface of the program's virtual function.
func (c *Client) interfaceOf(a *adapter) bool {
	return a.cfg.ofTenant && !a.removed && !c.only.removed && a.cfg.virtualOf == c.only.index
}

// adapter returns the adapter that a program calls by this index. The caller holds the loop lock.
func (c *Client) adapter(index uint32) (*adapter, error) {
	if c.only == nil {
		a, err := c.host.adapter(index)
		if err == nil && !c.sees(a) {
			err = command.Errorf(command.NotFound, "adapter %d: there is none for this program", index)
		}
		return a, err
	}
	if index != 0 {
		if a, err := c.host.adapter(index); err == nil && c.interfaceOf(a) {
			return a, nil
		}
		return nil, command.Errorf(command.NotFound, "adapter %d: the program has a virtual function, which is 0", index)
	}
	if c.only.removed {
		return nil, errRemoved()
	}
	return c.only, nil
}

// indexOf returns what a program calls an adapter.
func (c *Client) indexOf(a *adapter) uint32 {
	if a == c.only {
		return 0
	}
	return a.index
}

// functionName returns the name of a program's virtual function; empty: it has none.
func (c *Client) functionName() string {
	if c.only == nil {
		return ""
	}
	return c.only.name
}
