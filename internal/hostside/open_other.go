//go:build !linux

package hostside

import (
	"errors"
	"fmt"
)

// errSystem is what opening an end returns here.
var errSystem = fmt.Errorf("host: Ethernet functions for hosts of other systems than Linux: %w", errors.ErrUnsupported)

func openTAP(string) (End, error) { return nil, errSystem }

func openTAPIn(string, string) (End, error) { return nil, errSystem }

func inSpace(string, func() error) error { return errSystem }

func openSocket(string, string) (End, error) { return nil, errSystem }

func listen(string) (End, error) { return nil, errSystem }
