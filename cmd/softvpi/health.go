package main

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

type healthCmd struct {
	socketFlag `embed:""`
	Live       bool `help:"Only whether the driver makes progress, not whether every enabled adapter passes packets."`
	JSON       bool `name:"json" help:"Print JSON."`
}

func (c healthCmd) Run(s *session) error {
	h, err := c.admin().Health(s.ctx)
	if err != nil {
		return err
	}
	good := h.Live && (h.Ready || c.Live)
	if c.JSON {
		err = writeJSON(s.env.Stdout, h)
	} else {
		for _, r := range h.Reasons {
			if r.Adapter != "" {
				r.Text = r.Adapter + ": " + r.Text
			}
			if _, err = fmt.Fprintln(s.env.Stdout, r.Text); err != nil {
				return err
			}
		}
		if len(h.Reasons) == 0 {
			_, err = fmt.Fprintln(s.env.Stdout, "live and ready")
		}
	}
	if err == nil && !good {
		return silentError{tool.Failure}
	}
	return err
}
