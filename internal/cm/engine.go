package cm

import "errors"

// ID is a local communication ID: it names a listener or a connection. Zero is none.
type ID uint32

// Errors of the engine's calls, for errors.Is.
var (
	ErrNoID        = errors.New("cm: no such id")
	ErrState       = errors.New("cm: not allowed in this state")
	ErrPortInUse   = errors.New("cm: address and port in use")
	ErrNoPorts     = errors.New("cm: no ephemeral port left")
	ErrTooManyIDs  = errors.New("cm: too many ids")
	ErrPrivateData = errors.New("cm: too much private data")
)

// Engine is the connection manager of one adapter. One goroutine at a time calls it.
type Engine struct {
	cfg Config
}

// New makes an engine. The error is a *FieldError.
func New(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Engine{cfg: cfg}, nil
}
