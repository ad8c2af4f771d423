package driver

func (d *Driver) serveAttach() error {
	d.noAttach = "attaching is not built yet"
	return nil
}
