package driver

import (
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
)

// FieldError and ConfigError are what is wrong with a configuration.
type (
	FieldError  = api.FieldError
	ConfigError = config.Error
)
