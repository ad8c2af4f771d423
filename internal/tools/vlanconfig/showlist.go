package vlanconfig

import (
	"context"
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

// adapter is an adapter in the list.
type adapter struct {
	GUID        string `json:"guid"`
	Description string `json:"description"`
	Name        string `json:"name"`
}

// list is what showlist prints.
type list struct {
	Adapters []adapter  `json:"adapters"`
	Teams    []api.Team `json:"teams"`
}

// showList lists the adapters as Windows knows them, by the identifiers and descriptions in their registry keys, and the teams: with IPoIB
// the adapters with InfiniBand ports and the teams of those, otherwise the others.
func (s *session) showList(ctx context.Context, a *arguments) error {
	l := list{Adapters: []adapter{}, Teams: []api.Team{}}
	status, err := s.client.Status(ctx)
	if err != nil {
		return err
	}
	registry, err := s.client.LoadRegistry(ctx)
	if err != nil {
		return err
	}
	for i := range status.Adapters {
		r := status.Adapters[i].Identity()
		id, _ := registry.Get(r.Class(), "NetCfgInstanceId")
		desc, _ := registry.Get(r.Class(), "DriverDesc")
		if a.flags["IPoIB"] == (status.Adapters[i].InfiniBand != nil) {
			l.Adapters = append(l.Adapters, adapter{id.Show(), desc.Show(), r.Name})
		}
	}
	teams, err := s.client.Teams(ctx)
	if err != nil {
		return err
	}
	for _, t := range teams {
		if t.IPoIB == a.flags["IPoIB"] {
			l.Teams = append(l.Teams, t)
		}
	}
	var lines []string
	for _, a := range l.Adapters {
		lines = append(lines, fmt.Sprintf("%s     %s", a.GUID, a.Description))
	}
	if len(l.Teams) > 0 {
		lines = append(lines, teamLines(l.Teams...)...)
	}
	return s.print(l, lines...)
}
