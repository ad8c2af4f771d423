package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// OIDSource is implemented by a driver with such objects, and is then served.
type OIDSource interface {
	// SetOID sets an object.
	SetOID(api.OIDRequest) error
	// QueryOID returns the information buffer of an object.
	QueryOID(adapter, oid string) (api.OIDAnswer, error)
}

// OIDPath is the path of an object of an adapter.
type OIDPath struct {
	AdapterPath
	OID string `path:"oid" doc:"Number of the object in hexadecimal, 0xFFA0C932: dropless mode, 0xFFA0C9F0: reset, 0x00010255: reset of a virtual function."`
}

func (s *Server) oidRoutes(d OIDSource) {
	register(s, operation("PUT", "/adapters/{name}/oids/{oid}", "set-oid", "Set an object of an adapter's driver, as by NDIS"),
		func(_ context.Context, in *struct {
			OIDPath
			Body api.OIDRequest
		}) (*struct{}, error) {
			in.Body.Adapter, in.Body.OID = in.Name, in.OID
			return nil, d.SetOID(in.Body)
		})
	register(s, operation("GET", "/adapters/{name}/oids/{oid}", "query-oid", "Query an object of an adapter's driver, as by NDIS"),
		func(_ context.Context, in *OIDPath) (*struct{ Body api.OIDAnswer }, error) {
			a, err := d.QueryOID(in.Name, in.OID)
			return &struct{ Body api.OIDAnswer }{a}, err
		})
}
