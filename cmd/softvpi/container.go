package main

import (
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
)

type containerCmd struct {
	List containerListCmd `cmd:"" help:"Show what the programs of each container make the driver hold, and its quota."`
	Set  containerSetCmd  `cmd:"" help:"Change the quota of a container, until the driver ends. What its programs hold already stays."`
}

type containerListCmd struct {
	showFlags `embed:""`
}

func (c containerListCmd) Run(s *session) error {
	st, err := c.admin().Status(s.ctx)
	if err != nil {
		return err
	}
	return showAll(s, c.JSON, containersOf(st), nil)
}

type containerSetCmd struct {
	socketFlag `embed:""`
	Number     int      `arg:"" help:"Number of the container, from 0."`
	Settings   []string `arg:"" help:"memory=SIZE, descriptors=N; 0: as the driver's configuration says. What is not named stays as it is."`
}

func (c containerSetCmd) Run(s *session) error {
	r, err := config.ParseQuota(c.Number, c.Settings)
	if err != nil {
		return err
	}
	return c.admin().SetContainer(s.ctx, r)
}

// containersOf returns the sockets for containers of a driver: a list that is not null in JSON.
func containersOf(st *api.Status) []api.ContainerStatus {
	if st.Held == nil {
		return []api.ContainerStatus{}
	}
	return append([]api.ContainerStatus{}, st.Held.Containers...)
}
