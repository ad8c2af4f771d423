package ndperf

import (
	"context"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Main runs the test as a tool.
func (t Test) Main(ctx context.Context, env tool.Env) int {
	_, status, done := t.parse(env)
	if done {
		return status
	}
	env.Errorf("not built yet")
	return tool.Failure
}
