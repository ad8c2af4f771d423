package main

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type linkCmd struct {
	Show linkShowCmd `cmd:"" help:"Show what the links do to packets."`
	Set  linkSetCmd  `cmd:"" help:"Set what a link does to the packets that it sends, and the path that connections take."`
}

type linkShowCmd struct {
	socketFlag `embed:""`
	Name       string `arg:"" optional:"" help:"Name of the adapter (default: all)."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

func (c linkShowCmd) Run(s *session) error {
	st, err := c.admin().Status(s.ctx)
	if err != nil {
		return err
	}
	type row struct {
		Adapter    string            `json:"adapter"`
		Path       string            `json:"path"`
		Impairment string            `json:"impairment"`
		Link       driver.LinkStatus `json:"link"`
	}
	chosen, err := adaptersNamed(st, c.Name)
	if err != nil {
		return err
	}
	rows := []row{}
	for _, a := range chosen {
		rows = append(rows, row{a.Name, a.Path, a.Impairment, a.Link})
	}
	if c.JSON {
		return writeJSON(s.env.Stdout, rows)
	}
	for _, r := range rows {
		if r.Impairment == "" {
			r.Impairment = "none"
		}
		fmt.Fprintf(s.env.Stdout, "%s: path %s, impairment %s, %d packets lost on purpose\n", r.Adapter, r.Path, r.Impairment,
			r.Link.ImpairedLost)
	}
	return nil
}

type linkSetCmd struct {
	socketFlag `embed:""`
	Name       string   `arg:"" help:"Name of the adapter, such as \"Ethernet 1\"."`
	Settings   []string `arg:"" help:"loss= reorder= duplicate= corrupt= ecn= (percentages), delay= jitter= reorder-by= (such as 50us), rate= (bits per second, such as 10G), seed=, path= (auto, wire, local, direct), or none to clear. Settings that are not named stay as they are."`
}

func (c linkSetCmd) Run(s *session) error {
	q := driver.LinkRequest{Adapter: c.Name}
	var words []string
	for _, w := range c.Settings {
		if path, ok := strings.CutPrefix(w, "path="); ok {
			q.Path = &path
		} else {
			words = append(words, w)
		}
	}
	if len(words) > 0 {
		if _, err := (impair.Impairment{}).Parse(words...); err != nil {
			return err // reported without asking the driver
		}
		q.Impairment = &words
	}
	return c.admin().SetLink(s.ctx, q)
}

// adaptersNamed returns the adapter with a name, or all where name is empty.
func adaptersNamed(st *driver.Status, name string) (list []driver.AdapterStatus, err error) {
	for _, a := range st.Adapters {
		if name == "" || name == a.Name {
			list = append(list, a)
		}
	}
	if name != "" && len(list) == 0 {
		return nil, tool.Usagef("adapter is %q; allowed: %s", name, adapterNames(st))
	}
	return list, nil
}

func adapterNames(st *driver.Status) string {
	var names []string
	for _, a := range st.Adapters {
		names = append(names, fmt.Sprintf("%q", a.Name))
	}
	return strings.Join(names, ", ")
}
