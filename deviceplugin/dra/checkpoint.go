package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// claim is a claim that is prepared.
type claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Devices   []held `json:"devices"`
}

// held is a device that a claim has.
type held struct {
	Request  string `json:"request"`
	Pool     string `json:"pool"`
	Device   string `json:"device"` // in the pool
	Name     string `json:"name"`   // among the driver's CDI devices
	ID       string `json:"id"`     // the claim's CDI device
	Number   int    `json:"number"`
	Function string `json:"function,omitempty"`
	Preload  bool   `json:"preload"`
	// Memory and Descriptors are the quota that the claim has of a container, nil: the driver's, which the others are.
	Memory          *uint64 `json:"memory,omitempty"`
	Descriptors     *uint32 `json:"descriptors,omitempty"`
	BaseMemory      uint64  `json:"base_memory,omitempty"`
	BaseDescriptors uint64  `json:"base_descriptors,omitempty"`
	// Settings are those that the claim has of a function, and Before what they were.
	Settings []string `json:"settings,omitempty"`
	Before   []string `json:"before,omitempty"`
}

func (c *claim) result() (r kubeletplugin.PrepareResult) {
	for i := range c.Devices {
		h := &c.Devices[i]
		r.Devices = append(r.Devices, kubeletplugin.Device{Requests: []string{h.Request}, PoolName: h.Pool, DeviceName: h.Device,
			CDIDeviceIDs: []string{h.ID}})
	}
	return r
}

// checkpoint is the file in which prepared claims are, for the process after this one.
type checkpoint struct {
	Version int                 `json:"version"`
	Claims  map[types.UID]claim `json:"claims"`
}

const (
	checkpointFile    = "claims.json"
	checkpointVersion = 1
)

func readCheckpoint(path string) (map[types.UID]claim, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return map[types.UID]claim{}, nil
	}
	if err != nil {
		return nil, err
	}
	var c checkpoint
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Version != checkpointVersion {
		return nil, fmt.Errorf("%s: version is %d; allowed: %d", path, c.Version, checkpointVersion)
	}
	if c.Claims == nil {
		c.Claims = map[types.UID]claim{}
	}
	return c.Claims, nil
}

// keep keeps what a claim has, nil: nothing, before it counts.
func (p *plugin) keep(uid types.UID, c *claim) error {
	next := maps.Clone(p.claims)
	if c == nil {
		delete(next, uid)
	} else {
		next[uid] = *c
	}
	b, err := json.MarshalIndent(checkpoint{checkpointVersion, next}, "", "  ")
	if err != nil {
		return err
	}
	if err := wholefile.Write(filepath.Join(p.o.data, checkpointFile), b); err != nil {
		return err
	}
	p.claims = next
	return nil
}
