//go:build !linux

package verbs

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
)

// paging would reach memory of this process that is on demand; only Linux has calls for that.
type paging struct{}

func newPaging(func()) *paging { return &paging{} }

func (p *paging) reach(r command.RegisterMemory) (device.Reached, error) {
	return device.Reached{}, command.Errorf(command.Unsupported, "Access is %#x: this system has no paging on demand for embedded adapters", r.Access)
}

func (p *paging) close() {}
