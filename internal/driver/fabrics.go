package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// mostParts is how many parts of a fabric's state are asked for: so many ports no page shows.
const mostParts = 64

// Fabrics implements apiserver.FabricSource: those whose sockets are beside the driver's and that answer.
func (d *Driver) Fabrics() []string {
	names := []string{}
	if f := d.cfg.Fabric; f != nil {
		for _, name := range []string{f.Connect, f.Name} {
			if validFabric(name) == nil {
				names = append(names, name)
			}
		}
	}
	const any = "*"
	pattern := paths.Cables(any)
	before, after, _ := strings.Cut(filepath.Base(pattern), any)
	files, _ := filepath.Glob(pattern) // fails for a bad pattern only
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), before), after)
		if !slices.Contains(names, name) && validFabric(name) == nil {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := ibsim.Do(name, "status")
		return err != nil
	})
}

// validFabric checks the name of a fabric on this machine.
func validFabric(name string) error {
	if name == "" || len(name) > 64 || strings.ContainsAny(name, "/\\\x00 ") {
		return api.Wrong("name", fmt.Sprintf("%q", name), "the name of a fabric, 1 to 64 characters without spaces and slashes")
	}
	return nil
}

// FabricState implements apiserver.FabricSource.
func (d *Driver) FabricState(name string) (all state.Part, err error) {
	for range mostParts {
		text, err := d.CommandFabric(name, []string{"state", fmt.Sprint(all.Next)})
		if err != nil {
			return all, err
		}
		var part state.Part
		if err := json.Unmarshal([]byte(text), &part); err != nil {
			return all, fmt.Errorf("the fabric %s answers something else than its state: %w", name, err)
		}
		part.Ports = append(all.Ports, part.Ports...)
		if all.Next > 0 { // what is of the whole fabric is in the first part
			part.Deadlock, part.Incidents = all.Deadlock, all.Incidents
		}
		if all = part; all.Next == 0 {
			break
		}
	}
	return all, nil
}

// CommandFabric implements apiserver.FabricSource.
func (d *Driver) CommandFabric(name string, words []string) (string, error) {
	if err := validFabric(name); err != nil {
		return "", err
	}
	line := ""
	for _, w := range words {
		if w == "" || strings.ContainsAny(w, "\"\n\r\x00") {
			return "", api.Wrong("words", fmt.Sprintf("%q", w), "words without quotes and ends of lines")
		}
		line += ` "` + w + `"`
	}
	if line == "" {
		return "", api.Wrong("words", "none", "a command, such as unlink host0")
	}
	text, err := ibsim.Do(name, line)
	var refused *ibsim.CommandError
	switch {
	case errors.As(err, &refused):
		return "", refusedCommand(words, refused.Problem)
	case errors.Is(err, ibsim.ErrNoServer):
		return "", fmt.Errorf("the fabric %s does not run", name)
	}
	return text, err
}

// refusedCommand returns what is wrong with a command, which a fabric has said: as "port \"s[9]\"; allowed: ..." where it names a value.
func refusedCommand(words []string, problem string) error {
	what, allowed, named := strings.Cut(problem, "; allowed: ")
	field, value, two := strings.Cut(what, " ")
	if !named || !two {
		return api.Wrong("command", strconv.Quote(strings.Join(words, " ")), problem)
	}
	return api.Wrong(field, value, allowed)
}
