package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
)

// one is an answer with a body.
type one[T any] struct{ Body T }

func body[T any](v T) *one[T] { return &one[T]{v} }

// AdapterPath identifies an adapter in a path.
type AdapterPath struct {
	Name string `path:"name" doc:"Name of the adapter."`
}

// maxSmall limits the bytes of requests that change one thing.
const maxSmall = 64 << 10

// operation describes a request.
func operation(method, path, id, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: maxSmall,
		DefaultStatus: http.StatusOK}
}

// register adds a route; do computes the answer.
func register[I, O any](s *Server, op huma.Operation, do func(context.Context, *I) (*O, error)) {
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, problem(err)
		}
		return out, nil
	})
}

func (s *Server) routes() {
	d := s.cfg.Driver
	if x, ok := d.(Diagnostics); ok { // first: it counts the requests to the routes that follow
		s.diagnosticRoutes(x)
	}
	if x, ok := d.(ResourceSource); ok {
		s.resourceDumpRoutes(x)
	}
	if x, ok := d.(tracing); ok {
		s.traceRoutes(x)
	}
	if x, ok := d.(captures); ok {
		s.captureRoutes(x)
	}
	if x, ok := d.(packetBuffers); ok {
		s.packetBufferRoutes(x)
	}
	if x, ok := d.(pages); ok {
		s.linkRoutes(x)
	}
	if x, ok := d.(virtualPortSource); ok {
		s.virtualPortRoutes(x)
	}
	if x, ok := d.(ipoibSource); ok {
		s.ipoibRoutes(x)
	}
	if s.cfg.Counters != nil {
		s.counterRoutes(s.cfg.Counters)
	}
	if s.cfg.Events != nil {
		s.eventRoutes(s.cfg.Events)
	}
	register(s, operation("GET", "/status", "status", "The driver with its adapters, queue pairs and programs"),
		func(context.Context, *struct{}) (*one[api.Status], error) { return body(d.Status()), nil })
	register(s, operation("GET", "/adapters", "adapters", "The adapters, without their queue pairs"),
		func(context.Context, *struct{}) (*one[[]api.AdapterStatus], error) {
			return body(d.Overview().Adapters), nil
		})
	register(s, operation("GET", "/adapters/{name}", "adapter", "An adapter, without its queue pairs"),
		func(_ context.Context, in *AdapterPath) (*one[api.AdapterStatus], error) {
			return findAdapter(d.Overview().Adapters, in.Name)
		})
	register(s, operation("GET", "/programs", "programs", "The programs that are attached"),
		func(context.Context, *struct{}) (*one[[]api.ProgramStatus], error) {
			return body(d.Overview().Programs), nil
		})
	if x, ok := d.(FabricSource); ok {
		s.fabricRoutes(x)
	}
	if x, ok := d.(Tuner); ok {
		s.tuningRoutes(x)
	}
	if x, ok := d.(OIDSource); ok {
		s.oidRoutes(x)
	}
	if x, ok := d.(FaultSource); ok {
		s.faultRoutes(x)
	}
	if x, ok := d.(FunctionSource); ok {
		s.functionRoutes(x)
	}
	if x, ok := d.(ContainerSource); ok {
		s.containerRoutes(x)
	}
	if x, ok := d.(VirtualSwitchSource); ok {
		s.vswitchRoutes(x)
	}
	if x, ok := d.(OverlaySource); ok {
		s.overlayRoutes(x)
	}
	if x, ok := d.(TeamSource); ok {
		s.teamRoutes(x)
	}
	if x, ok := d.(VLANSource); ok {
		s.vlanRoutes(x)
	}
	if x, ok := d.(QoSSource); ok {
		s.qosRoutes(x)
	}
	s.healthRoutes(d)
	s.adapterRoutes(d)
	s.settingRoutes(d)
	s.registryRoutes(d)
	register(s, operation("GET", "/connections", "connections", "A page of the queue pairs with their owners"),
		func(_ context.Context, in *api.ConnectionQuery) (*one[api.Connections], error) {
			found, err := page(in, d.Status())
			return body(found), err
		})
}

func (s *Server) adapterRoutes(d Driver) {
	register(s, operation("PUT", "/adapters/{name}/state", "set-adapter", "Enable or disable an adapter"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.AdapterRequest
		}) (*struct{}, error) {
			in.Body.Adapter = in.Name
			return nil, d.SetAdapter(in.Body)
		})
	register(s, operation("POST", "/adapters/{name}/restart", "restart-adapter",
		"Disable and enable an adapter, with its keys as they are now"),
		func(_ context.Context, in *AdapterPath) (*struct{}, error) { return nil, d.RestartAdapter(in.Name) })
	register(s, operation("PUT", "/adapters/{name}/sleep", "sleep-adapter",
		"Put the host of an adapter's Ethernet function to sleep until a frame wakes it, or wake it"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.SleepRequest
		}) (*struct{}, error) {
			in.Body.Adapter = in.Name
			return nil, d.SleepAdapter(in.Body)
		})
	register(s, operation("PATCH", "/adapters/{name}/link", "set-link",
		"Change what the link does to packets, and the path of connections"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.LinkRequest
		}) (*struct{}, error) {
			in.Body.Adapter = in.Name
			return nil, d.SetLink(in.Body)
		})
}

// KeyPath identifies a key of an adapter in a path.
type KeyPath struct {
	AdapterPath
	Key string `path:"key" doc:"Name of a key of the catalogue."`
}

func (s *Server) settingRoutes(d Driver) {
	register(s, operation("GET", "/catalogue/keys", "catalogue-keys", "Every registry key that the catalogue declares"),
		func(context.Context, *struct{}) (*one[[]api.CatalogueKey], error) {
			var out []api.CatalogueKey
			for _, k := range catalogue.Keys() {
				out = append(out, fromCatalogue(k))
			}
			return body(out), nil
		})
	register(s, operation("GET", "/adapters/{name}/settings", "settings", "The keys of an adapter with their values in force"),
		func(_ context.Context, in *AdapterPath) (*one[[]api.Setting], error) {
			list, err := d.Settings(in.Name)
			return body(list), err
		})
	register(s, operation("PUT", "/adapters/{name}/settings/{key}", "set-setting", "Set a key of an adapter"),
		func(_ context.Context, in *struct {
			KeyPath
			Body struct {
				Value string `json:"value" doc:"In the form of reg add."`
			}
		}) (*one[api.Notices], error) {
			n, err := d.Set(in.Name, in.Key, &in.Body.Value)
			return body(api.Notices{Notices: n}), err
		})
	register(s, operation("DELETE", "/adapters/{name}/settings/{key}", "reset-setting", "Set a key of an adapter back to its default"),
		func(_ context.Context, in *KeyPath) (*one[api.Notices], error) {
			n, err := d.Set(in.Name, in.Key, nil)
			return body(api.Notices{Notices: n}), err
		})
}
