package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// Containers are sockets of their own for the programs of containers, each with a quota. They let programs attach, whichever user
// they have in their container, and nothing else; who reaches such a socket is up to whoever mounts its directory.
type Containers struct {
	Count int `json:"count"`
	// Memory and Descriptors are what the programs of one container may make the driver hold together, within its limits; 0:
	// no more limit than those.
	Memory      Size   `json:"memory,omitempty"`
	Descriptors uint32 `json:"descriptors,omitempty"`
	// Quotas are those of containers, by number, that have another quota than the others.
	Quotas map[int]Quota `json:"quotas,omitempty"`
}

// Quota is what the programs of a container may make the driver hold together; 0: as those of all containers.
type Quota struct {
	Memory      Size   `json:"memory,omitempty"`
	Descriptors uint32 `json:"descriptors,omitempty"`
}

const mostContainers = 256

// ParseContainers reads containers from a command line.
func ParseContainers(text string) (c Containers, err error) {
	given := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if ok = ok && !given[name]; ok && name == "count" {
			var n uint64
			n, err = strconv.ParseUint(value, 10, 31)
			ok, c.Count = err == nil, int(n)
		} else if ok {
			ok = c.quota(name, value)
		}
		if !ok {
			return c, api.Wrong("--containers", strconv.Quote(part), "count=N, memory=SIZE, descriptors=N, and for one container NUMBER.memory=SIZE, "+
				"NUMBER.descriptors=N, each once, with commas between; a SIZE is "+sizes)
		}
		given[name] = true
	}
	return c, nil
}

// quota takes a setting of the quota of all containers or, with a number before its name, of one.
func (c *Containers) quota(name, value string) (ok bool) {
	number, of, one := strings.Cut(name, ".")
	if !one {
		q := Quota{c.Memory, c.Descriptors}
		ok = q.set(name, value)
		c.Memory, c.Descriptors = q.Memory, q.Descriptors
		return ok
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != number { // so that none is given twice
		return false
	}
	q := c.Quotas[int(n)]
	if !q.set(of, value) {
		return false
	}
	if c.Quotas == nil {
		c.Quotas = map[int]Quota{}
	}
	c.Quotas[int(n)] = q
	return true
}

func (q *Quota) set(name, value string) (ok bool) {
	switch name {
	case "memory":
		q.Memory, ok = ParseSize(value)
	case "descriptors":
		n, err := strconv.ParseUint(value, 10, 31)
		q.Descriptors, ok = uint32(n), err == nil
	}
	return ok
}

// ParseQuota reads changes of the quota of a container, such as memory=64MiB; 0 is back to what the driver's configuration says. That
// the values are allowed is for the driver to say.
func ParseQuota(number int, settings []string) (r api.ContainerRequest, err error) {
	r.Number = number
	for _, s := range settings {
		var q Quota
		name, value, ok := strings.Cut(s, "=")
		if !ok || !q.set(name, value) || name == "memory" && r.Memory != nil || name == "descriptors" && r.Descriptors != nil {
			return r, api.Wrong("setting", strconv.Quote(s), "memory=SIZE, descriptors=N, each once; 0: as the driver's configuration says; a SIZE is "+
				sizes)
		}
		if name == "memory" {
			n := uint64(q.Memory)
			r.Memory = &n
		} else {
			r.Descriptors = &q.Descriptors
		}
	}
	return r, nil
}

// Quota returns that of a container.
func (c *Containers) Quota(number int) Quota {
	q := c.Quotas[number]
	if q.Memory == 0 {
		q.Memory = c.Memory
	}
	if q.Descriptors == 0 {
		q.Descriptors = c.Descriptors
	}
	return q
}

// complete checks the containers of a driver with that socket.
func (c *Containers) complete(socket string) error {
	if c == nil {
		return nil
	}
	if c.Count < 1 || c.Count > mostContainers {
		return api.Wrong("containers.count", fmt.Sprint(c.Count), fmt.Sprintf("1 to %d", mostContainers))
	}
	all := Quota{c.Memory, c.Descriptors}
	if err := all.Check("containers."); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(c.Quotas)) {
		if n < 0 || n >= c.Count {
			return api.Wrong("containers.quotas", fmt.Sprint(n), fmt.Sprintf("0 to %d, since containers.count is %d", c.Count-1, c.Count))
		}
		q := c.Quotas[n]
		if err := q.Check(fmt.Sprintf("containers.quotas.%d.", n)); err != nil {
			return err
		}
	}
	if longest := len(paths.Container(socket, mostContainers)); longest >= paths.MaxSocket {
		return api.Wrong("socket", strconv.Quote(socket), fmt.Sprintf("a path that is %d bytes shorter, since those of containers are below it",
			longest-paths.MaxSocket+1))
	}
	return nil
}

// Check checks what the programs of a container may hold; above is what errors name before the field.
func (q *Quota) Check(above string) error {
	if q.Memory != 0 && q.Memory < leastMemory {
		return api.Wrong(above+"memory", q.Memory.String(), fmt.Sprintf("at least %s", Size(leastMemory)))
	}
	if n := q.Descriptors; n != 0 && (n < leastDescriptors || n > mostDescriptors) {
		return api.Wrong(above+"descriptors", fmt.Sprint(n), fmt.Sprintf("%d to %d", leastDescriptors, mostDescriptors))
	}
	return nil
}
