package server

import (
	"bytes"
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// RegistryPath identifies a registry key in a query.
type RegistryPath struct {
	Path string `query:"path" required:"true" doc:"Full path, such as HKLM\\SYSTEM\\CurrentControlSet\\Services\\mlx5\\Parameters."`
}

// valuePath names a value of a registry key in a query.
type valuePath struct {
	RegistryPath
	Name string `query:"name" doc:"Empty: the key's default value."`
}

type keysQuery struct {
	RegistryPath
	Recurse bool `query:"recurse" doc:"The keys below too."`
}

type exportQuery struct {
	RegistryPath
	Format string `query:"format" enum:"5,4" default:"5" doc:"Version 5.00 in UTF-16, or REGEDIT4."`
}

type importQuery struct {
	Unchecked bool `query:"unchecked" doc:"Store values that the catalogue does not allow, too."`
	RawBody   []byte
}

// file is an answer that is a file.
type file struct {
	Type string `header:"Content-Type"`
	Name string `header:"Content-Disposition"`
	Body []byte
}

func (s *Server) registryRoutes(d Driver) {
	register(s, operation("GET", "/registry/keys", "registry-keys", "A registry key, or a tree of them"),
		func(_ context.Context, in *keysQuery) (*one[[]api.RegistryKey], error) {
			return readKeys(d.Registry(), in)
		})
	register(s, operation("GET", "/registry/value", "registry-value", "A registry value"),
		func(_ context.Context, in *valuePath) (*one[api.RegistryValue], error) {
			p, err := registry.ParsePath(in.Path)
			if err != nil {
				return nil, err
			}
			v, ok := d.Registry().Get(p, in.Name)
			if !ok {
				return nil, registry.ErrNotFound
			}
			return body(api.NewRegistryValue(v)), nil
		})
	register(s, operation("PUT", "/registry/value", "set-registry-value", "Set a registry value, making its key"),
		func(_ context.Context, in *struct {
			RegistryPath
			Unchecked bool `query:"unchecked"`
			Body      api.RegistryValue
		}) (*one[api.Notices], error) {
			return change(d, in.Unchecked, api.RegistryChange{Kind: api.KindName(registry.SetValue), Path: in.Path, Value: &in.Body})
		})
	register(s, operation("DELETE", "/registry/value", "delete-registry-value", "Delete a registry value"),
		func(_ context.Context, in *valuePath) (*one[api.Notices], error) {
			return change(d, false, api.RegistryChange{Kind: api.KindName(registry.DeleteValue), Path: in.Path,
				Value: &api.RegistryValue{Name: in.Name}})
		})
	register(s, operation("DELETE", "/registry/key", "delete-registry-key", "Delete a registry key with everything below it"),
		func(_ context.Context, in *RegistryPath) (*one[api.Notices], error) {
			return change(d, false, api.RegistryChange{Kind: api.KindName(registry.DeleteKey), Path: in.Path})
		})
	many := operation("POST", "/registry/changes", "change-registry", "Make changes, all or none")
	many.MaxBodyBytes = s.limits.Body
	register(s, many, func(_ context.Context, in *struct{ Body api.RegistryChanges }) (*one[api.Notices], error) {
		return change(d, in.Body.Unchecked, in.Body.Changes...)
	})
	s.regFileRoutes(d)
}

func (s *Server) regFileRoutes(d Driver) {
	get := operation("GET", "/registry/export", "export-registry", "A registry key with everything below it as a .reg file")
	get.Responses = map[string]*huma.Response{"200": {Description: "A .reg file", Content: map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}}
	register(s, get, func(_ context.Context, in *exportQuery) (*file, error) {
		p, err := registry.ParsePath(in.Path)
		if err != nil {
			return nil, err
		}
		format := registry.Version5
		if in.Format == "4" {
			format = registry.Regedit4
		}
		var b bytes.Buffer
		if err := d.Registry().WriteRegFile(&b, p, format); err != nil {
			return nil, err
		}
		return &file{"application/octet-stream", `attachment; filename="registry.reg"`, b.Bytes()}, nil
	})
	put := operation("POST", "/registry/import", "import-registry", "Make the changes of a .reg file, all or none")
	put.MaxBodyBytes = s.limits.Body
	register(s, put, func(_ context.Context, in *importQuery) (*one[api.Notices], error) {
		changes, err := registry.ParseRegFile(in.RawBody)
		if err != nil {
			return nil, err
		}
		n, err := d.ChangeRegistry(changes, in.Unchecked)
		return body(api.Notices{Notices: n}), err
	})
}

func readKeys(r *registry.Registry, in *keysQuery) (*one[[]api.RegistryKey], error) {
	p, err := registry.ParsePath(in.Path)
	if err != nil {
		return nil, err
	}
	var out []api.RegistryKey
	found := r.Walk(p, func(k registry.Key) bool {
		out = append(out, fromKey(k))
		return in.Recurse
	})
	if !found {
		return nil, registry.ErrNotFound
	}
	return body(out), nil
}

func change(d Driver, unchecked bool, list ...api.RegistryChange) (*one[api.Notices], error) {
	changes := make([]registry.Change, len(list))
	for i := range list {
		var err error
		if changes[i], err = list[i].Registry(); err != nil {
			return nil, err
		}
	}
	n, err := d.ChangeRegistry(changes, unchecked)
	return body(api.Notices{Notices: n}), err
}
