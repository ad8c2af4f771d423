package opensm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/service"
)

const (
	defaultCache      = "/var/cache/opensm"
	defaultPartitions = "/etc/opensm/partitions.conf"
	defaultRoutes     = "/etc/opensm/prefix-routes.conf"
	defaultPolicy     = "/etc/opensm/qos-policy.conf"
	defaultDumps      = "/var/log/"
)

// files returns where the manager keeps things from run to run: LIDs in OSM_CACHE_DIR and, if the options
// say so, what ports have registered (opensm(8)).
func (o *options) files() service.Files {
	dir := os.Getenv("OSM_CACHE_DIR")
	if dir == "" {
		dir = defaultCache
	}
	f := service.Files{LIDs: filepath.Join(dir, service.LIDsName), Load: o.saLoad}
	if o.saDump {
		f.Dump = filepath.Join(o.dumps, service.DumpName)
	}
	return f
}

// readFile reads a file. It may be missing if it has the default name, or none.
func readFile(name, usual string) (text string, there bool, err error) {
	if name == "" {
		return "", false, nil
	}
	b, err := inputfile.Read(name, inputfile.Text)
	if name == usual && os.IsNotExist(err) {
		return "", false, nil
	}
	return string(b), err == nil, err
}

// loadPrefixRoutes reads the file of prefix routes.
func loadPrefixRoutes(name string) ([]administration.PrefixRoute, error) {
	text, there, err := readFile(name, defaultRoutes)
	if err != nil || !there {
		return nil, err
	}
	routes, err := administration.ParsePrefixRoutes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return routes, nil
}

// loadPolicy reads the file of service levels; nil: there is none.
func loadPolicy(name string) (*administration.QoSPolicy, error) {
	text, there, err := readFile(name, defaultPolicy)
	if err != nil || !there {
		return nil, err
	}
	p, err := administration.ParseQoSPolicy(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// loadPartitions reads the partition configuration; nil: there is none.
func loadPartitions(name string) (*partition.Config, error) {
	b, there, err := readFile(name, defaultPartitions)
	if err != nil || !there {
		return nil, err
	}
	p, err := partition.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// loadRoots reads GUIDs, one per line.
func loadRoots(name string) ([]uint64, error) {
	if name == "" {
		return nil, nil
	}
	b, err := inputfile.Read(name, inputfile.Text)
	if err != nil {
		return nil, err
	}
	var guids []uint64
	for i, l := range strings.Split(string(b), "\n") {
		if l, _, _ = strings.Cut(l, "#"); strings.TrimSpace(l) == "" {
			continue
		}
		g, err := hexadecimal(strings.TrimSpace(l))
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, i+1, err)
		}
		guids = append(guids, g)
	}
	return guids, nil
}
