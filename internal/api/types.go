package api

import (
	"github.com/softvpi/softvpi/internal/registry"
)

// AdapterRequest enables or disables an adapter.
type AdapterRequest struct {
	Adapter string `json:"-"` // by name
	Enable  bool   `json:"enable" doc:"Whether programs can use the adapter. Disabling ends its connections."`
}

// SleepRequest puts the host of an adapter's Ethernet function to sleep, or wakes it.
type SleepRequest struct {
	Adapter  string   `json:"-"` // by name
	Sleep    bool     `json:"sleep" doc:"Whether the host sleeps: nothing is read from it, and frames for it are lost until one wakes it."`
	Patterns []string `json:"patterns,omitempty" doc:"Frames that wake it beside magic packets, such as 12:0806+38:c0000201: parts of OFFSET:HEX, all of which match."`
}

// LinkRequest sets what the link of an adapter does to packets, and the path that connections take. Nil
// leaves a setting unchanged.
type LinkRequest struct {
	Adapter    string    `json:"-"`
	Impairment *[]string `json:"impairment,omitempty" doc:"Words such as loss=1% delay=50us seed=7, on top of what is set; none clears."`
	Path       *string   `json:"path,omitempty" doc:"auto, wire, local or direct"`
}

// Setting is a key of an adapter with its values as text, in the form in which they are set.
type Setting struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty" doc:"As the device manager shows it."`
	Group       string   `json:"group" doc:"The manuals' table."`
	Path        string   `json:"path" doc:"The registry key that holds it."`
	Type        string   `json:"type"`
	Value       string   `json:"value" doc:"In force: what the adapter runs with."`
	Automatic   bool     `json:"automatic" doc:"The value in force is derived."`
	Stored      *string  `json:"stored,omitempty" doc:"In the registry; absent: not set."`
	Default     string   `json:"default"`
	Allowed     string   `json:"allowed"`
	Choices     []Choice `json:"choices,omitempty"`
	Unit        string   `json:"unit,omitempty"`
	Effect      string   `json:"effect" enum:"at once,at restart"`
	Status      string   `json:"status" enum:"built,stored only,read only"`
	UI          bool     `json:"ui" doc:"The device manager shows it."`
	Pending     bool     `json:"pending" doc:"What is stored takes effect at the next restart."`
	Problem     string   `json:"problem,omitempty" doc:"Why what is stored does not count."`
	Description string   `json:"description"`
}

// Choice is one of the values that a Setting can have.
type Choice struct {
	Value   string `json:"value"`
	Name    string `json:"name"`
	Meaning string `json:"meaning,omitempty"`
}

// RegistryValue is a value of a registry key.
type RegistryValue struct {
	Name string `json:"name" doc:"Empty: the key's default value."`
	Type string `json:"type" doc:"REG_SZ, REG_DWORD and so on, or a number."`
	Data []byte `json:"data,omitempty" doc:"As Windows holds it: strings in UTF-16LE with a zero behind, numbers in little endian."`
	Text string `json:"text,omitempty" doc:"The data as reg query shows it; not read in requests."`
}

// RegistryKey is a registry key.
type RegistryKey struct {
	Path    string          `json:"path"`
	Values  []RegistryValue `json:"values"`
	Subkeys []string        `json:"subkeys" doc:"Full paths."`
}

// RegistryChange is one step of a change to the registry.
type RegistryChange struct {
	Kind    string         `json:"kind" enum:"create key,set value,delete value,delete values,delete key"`
	Path    string         `json:"path"`
	Value   *RegistryValue `json:"value,omitempty" doc:"Of set value; of delete value the name."`
	Lenient bool           `json:"lenient,omitempty" doc:"Deleting something that does not exist is not an error."`
	Line    int            `json:"line,omitempty" doc:"Where it stands in a file, for messages."`
}

// RegistryChanges are changes that are made all or none.
type RegistryChanges struct {
	Changes   []RegistryChange `json:"changes" maxItems:"100000"`
	Unchecked bool             `json:"unchecked,omitempty" doc:"Store values that the catalogue does not allow, too; the driver uses the default then."`
}

// Notices are remarks about a change.
type Notices struct {
	Notices []registry.Notice `json:"notices"`
}

// Connection is a queue pair with its adapter.
type Connection struct {
	Adapter string `json:"adapter"`
	QPStatus
}

// Connections is a page of the queue pairs.
type Connections struct {
	Total int          `json:"total" doc:"How many match, on all pages."`
	Items []Connection `json:"items"`
}

// CatalogueKey is a registry key as the catalogue declares it.
type CatalogueKey struct {
	Name        string            `json:"name"`
	Aliases     []string          `json:"aliases,omitempty"`
	Title       string            `json:"title,omitempty"`
	Group       string            `json:"group"`
	Place       string            `json:"place" doc:"The key that holds it, with <nn> for the number of the adapter."`
	Generations []string          `json:"generations"`
	Type        string            `json:"type"`
	Defaults    map[string]string `json:"defaults" doc:"By generation."`
	Allowed     string            `json:"allowed"`
	Choices     []Choice          `json:"choices,omitempty"`
	Unit        string            `json:"unit,omitempty"`
	Effect      string            `json:"effect" enum:"at once,at restart"`
	Status      string            `json:"status" enum:"built,stored only,read only"`
	UI          bool              `json:"ui"`
	Description string            `json:"description"`
	Sources     []string          `json:"sources"`
}
