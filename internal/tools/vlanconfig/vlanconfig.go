// Package vlanconfig is vlan_config, WinOF's tool for teams and VLANs (WinOF 5.50, 4.1.6). It lists
// adapters; teams and VLANs are not implemented, and their commands say so. The catalogue declares its
// commands.
package vlanconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// name is the tool's name in the catalogue.
const name = "vlan_config"

// adapter is an adapter in the list.
type adapter struct {
	GUID        string `json:"guid"`
	Description string `json:"description"`
	Name        string `json:"name"`
}

// Main runs vlan_config.
func Main(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, synopsis())
	socket := f.String("socket", "", "`path` of the driver's socket")
	asJSON := f.Bool("json", false, "print JSON")
	if status, done := f.Parse(); done {
		return status
	}
	var words []string
	for i := range f.NArg() {
		words = append(words, f.Arg(i))
	}
	c, rest, err := find(words)
	switch {
	case err != nil:
	case c.Status != catalogue.Built:
		err = fmt.Errorf("%s: %w", c.Name, tool.ErrUnsupported)
	case len(rest) > 1 || len(rest) == 1 && !strings.EqualFold(rest[0], "IPoIB"):
		err = tool.Usagef("%s: unexpected argument %q; allowed: %s %s", c.Name, rest[len(rest)-1], c.Name, c.Arguments)
	default:
		err = showList(ctx, env, api.NewClient(*socket), len(rest) == 1, *asJSON)
	}
	return env.End(ctx, err)
}

// find finds the command that the words begin with, and the remaining words.
func find(words []string) (*catalogue.Command, []string, error) {
	var names []string
	for _, c := range catalogue.CommandsOf(name) {
		n := len(strings.Fields(c.Name))
		if len(words) >= n && strings.EqualFold(strings.Join(words[:n], " "), c.Name) {
			return &c, words[n:], nil
		}
		names = append(names, c.Name)
	}
	what := "a command is missing"
	if len(words) > 0 {
		what = fmt.Sprintf("%q is not a command", strings.Join(words[:min(2, len(words))], " "))
	}
	return nil, nil, tool.Usagef("%s; allowed: %s", what, strings.Join(names, ", "))
}

// showList lists the adapters as Windows knows them, by the identifiers and descriptions in their registry
// keys: with ipoib those with InfiniBand ports, otherwise the others.
func showList(ctx context.Context, env tool.Env, client *api.Client, ipoib, asJSON bool) error {
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	registry, err := client.LoadRegistry(ctx)
	if err != nil {
		return err
	}
	list := []adapter{}
	for i := range status.Adapters {
		a := status.Adapters[i].Identity()
		id, _ := registry.Get(a.Class(), "NetCfgInstanceId")
		desc, _ := registry.Get(a.Class(), "DriverDesc")
		if ipoib == (status.Adapters[i].InfiniBand != nil) {
			list = append(list, adapter{id.Show(), desc.Show(), a.Name})
		}
	}
	if asJSON {
		e := json.NewEncoder(env.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(list)
	}
	for _, a := range list {
		if _, err := fmt.Fprintf(env.Stdout, "%s     %s\n", a.GUID, a.Description); err != nil {
			return err
		}
	}
	return nil
}

func synopsis() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s <command> [options]\nLists the adapters. Teams and VLANs are not supported yet.\n\nCommands:\n", name)
	for _, c := range catalogue.CommandsOf(name) {
		note := ""
		if c.Status != catalogue.Built {
			note = " Not supported yet."
		}
		fmt.Fprintf(&b, "  %s %s\n      %s%s\n", c.Name, c.Arguments, c.Summary, note)
	}
	b.WriteString("\nOptions:")
	return b.String()
}
