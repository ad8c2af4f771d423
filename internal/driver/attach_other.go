//go:build !linux

package driver

func (d *Driver) serveAttach() error {
	d.noAttach = "attaching is built for Linux only; on this system programs embed their adapters"
	return nil
}
