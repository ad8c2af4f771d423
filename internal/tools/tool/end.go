package tool

import (
	"context"
	"errors"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
)

// ErrUnsupported is what adapters do not have, or this one does not.
var ErrUnsupported = errors.New("not supported by this adapter")

// ErrIdle is a server that its user stopped while it waited for a client, which
// is how a server ends.
var ErrIdle = errors.New("stopped while waiting for a client")

// End returns the exit status of a tool whose work ended with err, which it
// reports. Where ctx has ended, the user stopped the tool: what failed then
// failed for that, and only that is said.
func (e Env) End(ctx context.Context, err error) int {
	switch {
	case err == nil, errors.Is(err, ErrIdle):
		return Success
	case errors.Is(err, ErrUnsupported):
		e.Errorf("%s", err)
		return Unsupported
	case wrong(err):
		e.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", " "))
		return Usage
	case ctx.Err() != nil:
		e.Errorf("stopped")
		return Failure
	}
	return e.Fail(err)
}

// wrong says whether an error is about a value that the user gave. Its text names the field and what is allowed.
func wrong(err error) bool {
	var usage *UsageError
	var field *api.FieldError
	var value *catalogue.ValueError
	var path *counters.PathError
	return errors.As(err, &usage) || errors.As(err, &field) || errors.As(err, &value) || errors.As(err, &path)
}
