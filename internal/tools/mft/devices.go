// Package mft holds two of the firmware tools: mlxconfig, which changes the non-volatile configuration of
// devices, and mst, which lists them (WinOF 5.50, 4.5.3.4.1; WinOF-2 1.21, 3.1.1 and 3.3.3.3.1).
package mft

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
)

// device is a device as named by the firmware tools.
type device struct {
	of      api.Device
	name    string
	other   string // second name of mlx4 devices: that of its configuration cycles; "" for none
	kind    string
	adapter *api.AdapterStatus // of its first port, which has its parameters
}

// devices returns those of the driver, numbered per part in the order of the registry. Their names have the
// numbers of the cards in the manuals, because scripts look for them.
func devices(s *api.Status) []device {
	var list []device
	for _, x := range s.Devices() {
		list = append(list, device{adapter: x.First(), of: x})
	}
	slices.SortStableFunc(list, func(a, b device) int { return cmp.Compare(a.adapter.Number, b.adapter.Number) })
	seen := map[catalogue.Generation]int{}
	for i := range list {
		d := &list[i]
		g := d.adapter.Class()
		d.kind, d.name = "ConnectX4", fmt.Sprintf("mt%d_pciconf%d", g.PartID(), seen[g])
		if g == catalogue.MLX4 {
			d.kind, d.other = "ConnectX3Pro", fmt.Sprintf("mt%d_pci_cr%d", g.PartID(), seen[g])
		}
		seen[g]++
	}
	return list
}

// pick returns the devices of that name, with or without the prefix /dev/mst/; all if name is empty.
func pick(list []device, name string) ([]device, error) {
	if name == "" {
		return list, nil
	}
	var names []string
	for _, d := range list {
		if bare := strings.TrimPrefix(name, "/dev/mst/"); bare == d.name || bare == d.other {
			return []device{d}, nil
		}
		names = append(names, d.name)
	}
	return nil, &api.FieldError{Field: "device", Value: fmt.Sprintf("%q", name), Allowed: strings.Join(names, ", ")}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
