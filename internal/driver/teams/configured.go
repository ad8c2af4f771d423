package teams

import (
	"errors"

	"github.com/softvpi/softvpi/internal/device"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
)

// putOnConfigured opens a team of the configuration. Without a MAC in its configuration the adapter has the team's.
func (r *Roster) putOnConfigured(i int, cfg *device.AdapterConfig) (err error) {
	a := &r.cfg.Adapters[i]
	c := linkteam.Config{Team: a.Team.Engine(), Notify: r.cfg.Driver.Wake}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(c.Links))
		}
	}()
	for k := range a.Team.Members {
		c.Names = append(c.Names, a.Team.Members[k].String())
	}
	c.Changed = r.news.of(i)
	for k := range a.Team.Members {
		if c.Team.Members[k].MAC, err = a.MemberMAC(k); err != nil {
			return err
		}
		l, err := r.cfg.Driver.OpenWire(a.Team.Members[k].Wire(a), cfg.UDPPort)
		if err != nil {
			return err
		}
		c.Links = append(c.Links, l)
	}
	l, err := linkteam.Open(c)
	if err != nil {
		return err
	}
	if cfg.Link = l; cfg.MAC == [6]byte{} {
		cfg.MAC = l.MAC()
	}
	r.showConfigured(i, l)
	return nil
}
