package tool

import (
	"context"
	"errors"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
)

// ErrUnsupported says that adapters, or this one, do not support something.
var ErrUnsupported = api.ErrUnsupported

// ErrIdle says that the user stopped a server while it waited for a client, which is the normal way to end
// a server.
var ErrIdle = errors.New("stopped while waiting for a client")

// End reports err and returns the exit status of a tool that ended with it. If ctx has ended the user
// stopped the tool: that explains the failure, so only that is reported.
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

// wrong reports whether an error is about a value given by the user. Its text names the field and what is
// allowed.
func wrong(err error) bool {
	var usage *UsageError
	var field *api.FieldError
	var value *catalogue.ValueError
	var path *counters.PathError
	return errors.As(err, &usage) || errors.As(err, &field) || errors.As(err, &value) || errors.As(err, &path)
}
