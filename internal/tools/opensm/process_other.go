//go:build !unix

package opensm

import "github.com/softvpi/softvpi/internal/tools/tool"

// signals does nothing on this system.
func signals(*journal, func()) (stop func()) { return func() {} }

func detach([]string) error {
	return tool.Usagef("option -B: not supported on this system")
}
