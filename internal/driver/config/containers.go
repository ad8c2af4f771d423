package config

import (
	"fmt"
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
}

const mostContainers = 256

// ParseContainers reads containers from a command line.
func ParseContainers(text string) (c Containers, err error) {
	given := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || given[name]:
			ok = false
		case name == "memory":
			c.Memory, ok = ParseSize(value)
		case name == "count" || name == "descriptors":
			var n uint64
			n, err := strconv.ParseUint(value, 10, 31)
			if ok = err == nil; name == "count" {
				c.Count = int(n)
			} else {
				c.Descriptors = uint32(n)
			}
		default:
			ok = false
		}
		if !ok {
			return c, api.Wrong("--containers", strconv.Quote(part), "count=N, memory=SIZE, descriptors=N, each once, with commas between; a SIZE is "+
				sizes)
		}
		given[name] = true
	}
	return c, nil
}

// complete checks the containers of a driver with that socket.
func (c *Containers) complete(socket string) error {
	if c == nil {
		return nil
	}
	if c.Count < 1 || c.Count > mostContainers {
		return api.Wrong("containers.count", fmt.Sprint(c.Count), fmt.Sprintf("1 to %d", mostContainers))
	}
	if err := c.CheckQuota("containers."); err != nil {
		return err
	}
	if longest := len(paths.Container(socket, mostContainers)); longest >= paths.MaxSocket {
		return api.Wrong("socket", strconv.Quote(socket), fmt.Sprintf("a path that is %d bytes shorter, since those of containers are below it",
			longest-paths.MaxSocket+1))
	}
	return nil
}

// CheckQuota checks what the programs of a container may hold; above is what errors name before the field.
func (c *Containers) CheckQuota(above string) error {
	if c.Memory != 0 && c.Memory < leastMemory {
		return api.Wrong(above+"memory", c.Memory.String(), fmt.Sprintf("at least %s", Size(leastMemory)))
	}
	if n := c.Descriptors; n != 0 && (n < leastDescriptors || n > mostDescriptors) {
		return api.Wrong(above+"descriptors", fmt.Sprint(n), fmt.Sprintf("%d to %d", leastDescriptors, mostDescriptors))
	}
	return nil
}
