package ipoib

import "fmt"

// formatError says that a field of a received message, or its length, has an invalid value.
type formatError struct {
	Field string
	Got   int
	Want  string // what is allowed
}

// Error implements error.
func (e *formatError) Error() string {
	return fmt.Sprintf("%s is %d, want %s", e.Field, e.Got, e.Want)
}

// ConfigError says which field of a Config is invalid. Test for it with errors.As.
type ConfigError struct {
	Field string
	Got   any
	Want  string
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s is %v, want %s", e.Field, e.Got, e.Want)
}
