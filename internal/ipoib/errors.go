package ipoib

import "fmt"

// formatError says that a field of a message that arrived, or its length, has a value that cannot be.
type formatError struct {
	Field string
	Got   int
	Want  string // what is allowed
}

// Error implements error.
func (e *formatError) Error() string {
	return fmt.Sprintf("%s is %d, want %s", e.Field, e.Got, e.Want)
}

// ConfigError says which field of a Config cannot be. Test for it with errors.As.
type ConfigError struct {
	Field string
	Got   any
	Want  string
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s is %v, want %s", e.Field, e.Got, e.Want)
}
