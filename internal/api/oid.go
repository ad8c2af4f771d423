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

// SetOID sets an object of an adapter's driver.
func (c *Client) SetOID(ctx context.Context, q OIDRequest) error {
	return c.call(ctx, "PUT", adapterURL(q.Adapter, "/oids/"+q.OID), nil, q, nil)
}

// QueryOID queries an object of an adapter's driver.
func (c *Client) QueryOID(ctx context.Context, adapter, oid string) (a OIDAnswer, err error) {
	return a, c.call(ctx, "GET", adapterURL(adapter, "/oids/"+oid), nil, nil, &a)
}
