package main

import (
	"context"
	"fmt"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/service"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// beginService returns this process as a service of Windows, and the context that ends when the service is to stop; nil if it is not one.
type beginService func(context.Context) (*service.Service, context.Context, error)

// inService lets the driver of a service print to driver.log in the state directory, since a service has no output; end closes it.
func (c upCmd) inService(s *session, cfg config.Config) (end func(), err error) {
	if c.Background {
		return nil, tool.Usagef("--background: this is a service of Windows; allowed: up without it")
	}
	cfg, err = cfg.Complete()
	if err != nil {
		return nil, err
	}
	log, err := openDriverLog(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("log of the driver: %w", err)
	}
	s.env.Stdout, s.env.Stderr, s.env.Terminal = log.file, log.file, false
	return func() { _ = log.Close() }, nil
}
