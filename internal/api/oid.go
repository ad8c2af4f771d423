package api

import "context"

// OIDRequest sets an object of an adapter's driver by its number, as a program on Windows does by NDIS.
type OIDRequest struct {
	Adapter string `json:"-"` // by name
	OID     string `json:"-"` // in hexadecimal, 0xFFA0C932
	Buffer  string `json:"buffer" doc:"Information buffer, in hexadecimal."`
}

// OIDAnswer is what a query of an object answers.
type OIDAnswer struct {
	Buffer string `json:"buffer" doc:"Information buffer, in hexadecimal."`
}

// OIDSource is implemented by a driver with such objects, and is then served.
type OIDSource interface {
	// SetOID sets an object.
	SetOID(OIDRequest) error
	// QueryOID returns the information buffer of an object.
	QueryOID(adapter, oid string) (OIDAnswer, error)
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
			Body OIDRequest
		}) (*struct{}, error) {
			in.Body.Adapter, in.Body.OID = in.Name, in.OID
			return nil, d.SetOID(in.Body)
		})
	register(s, operation("GET", "/adapters/{name}/oids/{oid}", "query-oid", "Query an object of an adapter's driver, as by NDIS"),
		func(_ context.Context, in *OIDPath) (*struct{ Body OIDAnswer }, error) {
			a, err := d.QueryOID(in.Name, in.OID)
			return &struct{ Body OIDAnswer }{a}, err
		})
}

// SetOID sets an object of an adapter's driver.
func (c *Client) SetOID(ctx context.Context, q OIDRequest) error {
	return c.call(ctx, "PUT", adapterURL(q.Adapter, "/oids/"+q.OID), nil, q, nil)
}

// QueryOID queries an object of an adapter's driver.
func (c *Client) QueryOID(ctx context.Context, adapter, oid string) (a OIDAnswer, err error) {
	return a, c.call(ctx, "GET", adapterURL(adapter, "/oids/"+oid), nil, nil, &a)
}
