package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// component is one of the parts of a program, as CycloneDX 1.5 lists it.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	URL     string `json:"purl,omitempty"` // a package URL
}

// bill is a software bill of materials.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

// homeModule is that of softvpi itself.
const homeModule = "github.com/softvpi/softvpi"

// standardLibrary is how a bill calls that of Go.
const standardLibrary = "std"

// newBill returns what programs were built of, as the Go linker has noted it.
func newBill(version string, programs ...string) (*bill, error) {
	b := &bill{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Name: "softvpi", Version: version}}}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return nil, err
		}
		b.add(standardLibrary, strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range info.Deps {
			if m.Path == homeModule {
				continue // the device plugin is built with the directory beside its own
			}
			if m.Replace != nil {
				m = m.Replace
			}
			b.add(m.Path, m.Version)
		}
	}
	return b, nil
}

// write writes the bill to a file.
func (b *bill) write(to string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}

// add adds a module of Go, once.
func (b *bill) add(path, version string) {
	c := component{Type: "library", Name: path, Version: version, URL: "pkg:golang/" + path + "@" + version}
	if !slices.Contains(b.Components, c) {
		b.Components = append(b.Components, c)
	}
}
