package driver

import (
	"context"
	"errors"

	"github.com/softvpi/softvpi/internal/ipc"
)

// serveAttach lets programs attach if the system supports it.
func (d *Driver) serveAttach() error {
	who := d.cfg.ProgramsAudience()
	s, err := ipc.NewServer(d.attachHost(), ipc.ServerConfig{Driver: "softvpi " + d.version, Log: d.log, Audience: who, Ended: d.programEnded})
	if errors.Is(err, ipc.ErrPlatform) {
		d.noAttach = "attaching is built for Linux only; on this system programs embed their adapters"
		return nil
	}
	if err != nil {
		return err
	}
	l, err := listen(d.cfg.Socket, who.Mode())
	if err != nil {
		return err
	}
	d.attach = s
	go func() {
		if err := s.Serve(context.Background(), l); err != nil {
			d.log.Error("attach socket", "error", err)
		}
	}()
	return nil
}
