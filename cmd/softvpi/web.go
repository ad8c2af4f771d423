package main

import (
	"fmt"
	"time"
)

type webCmd struct {
	socketFlag `embed:""`
	Close      bool `help:"End the sessions and close the pages' port."`
	JSON       bool `name:"json" help:"Print JSON."`
}

// Run prints a link to the pages of the running driver.
func (c webCmd) Run(s *session) error {
	if c.Close {
		return c.admin().ClosePages(s.ctx)
	}
	l, err := c.admin().Link(s.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(s.env.Stdout, l)
	}
	fmt.Fprintf(s.env.Stdout, "%s\n", l.URL)
	fmt.Fprintf(s.env.Stderr, "opens one session, until %s\n", l.Until.Local().Format(time.TimeOnly))
	return nil
}
