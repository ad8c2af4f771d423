package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
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

// writeBill writes what a program was built of, as the Go linker has noted it, to a file.
func writeBill(program, version, to string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	b := bill{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Name: "softvpi", Version: version}}}
	b.Components = append(b.Components, component{Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		URL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, component{Type: "library", Name: m.Path, Version: m.Version,
			URL: "pkg:golang/" + m.Path + "@" + m.Version})
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}
