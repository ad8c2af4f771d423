//go:build !linux

package journal

import (
	"errors"
	"io"
	"log/slog"
)

// Socket is where the journal listens, of which there is none on this system.
const Socket = ""

// For returns the fallback.
func For(_ io.Writer, _, _ string, _ slog.Leveler, fallback slog.Handler) slog.Handler {
	return fallback
}

// Conn is the connection with a journal.
type Conn struct{}

// Dial fails, because this system has no journal.
func Dial(string) (*Conn, error) { return nil, errors.ErrUnsupported }

// Send fails.
func (*Conn) Send([]byte) error { return errors.ErrUnsupported }

// Close does nothing.
func (*Conn) Close() error { return nil }
