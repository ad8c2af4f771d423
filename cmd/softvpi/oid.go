package main

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

type oidCmd struct {
	adapterRef `embed:""`
	OID        string `arg:"" name:"oid" help:"Number of the object: 0xFFA0C932 is dropless mode, 0xFFA0C9F0 resets the adapter, 0x00010255 a virtual function of it."`
	Buffer     string `arg:"" optional:"" help:"Information buffer in hexadecimal, to set the object: a21e0c0001 enters dropless mode and a21e0c0002 leaves it; of the mlx4 generation 01 and 00. 01 resets the adapter, 800106000300 its virtual function 3 (0300: the number, low byte first). Without it the object is queried, and its buffer printed."`
}

func (c oidCmd) Run(s *session) error {
	if c.Buffer != "" {
		return c.admin().SetOID(s.ctx, api.OIDRequest{Adapter: c.Name, OID: c.OID, Buffer: c.Buffer})
	}
	a, err := c.admin().QueryOID(s.ctx, c.Name, c.OID)
	if err == nil {
		fmt.Fprintln(s.env.Stdout, a.Buffer)
	}
	return err
}
