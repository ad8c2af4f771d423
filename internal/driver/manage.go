package driver

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/web"
)

// manage serves the management interface.
func (d *Driver) manage() error {
	d.counters = collector.New(collector.Config{Read: d.words, CPUs: lastProcessor() + 1, Driver: d.driverValues,
		Identities: d.identities,
		Watched:    d.host.WatchRSS})
	d.api = apiserver.New(apiserver.Config{Driver: d, Version: d.version, Log: d.log, Events: d.events, Counters: d.counters,
		Panicked: d.requestPanicked})
	l, err := d.listen(paths.Management(d.cfg.Socket), d.cfg.ReadersAudience().Mode())
	if err != nil {
		return err
	}
	go func() {
		if err := d.api.ServeUnix(l); err != nil && !errors.Is(err, net.ErrClosed) {
			d.log.Error("management socket", "error", err)
		}
	}()
	if d.cfg.Web != "" {
		if err := d.openPages(d.cfg.Web); err != nil {
			return err
		}
	}
	if d.cfg.Manage == nil {
		return nil
	}
	return d.manageTCP(*d.cfg.Manage)
}

func (d *Driver) manageTCP(m config.Manage) error {
	cert, err := apiserver.LoadCertificate(m.Certificate, m.Key, m.Listen)
	if err != nil {
		return &config.Error{Path: fmt.Sprintf("manage.certificate %s, manage.key %s", m.Certificate, m.Key), Err: err}
	}
	token, err := apiserver.LoadToken(m.TokenFile)
	if err != nil {
		return &config.Error{Path: "manage.token_file", Err: err}
	}
	l, err := net.Listen("tcp", m.Listen)
	if err != nil {
		return fmt.Errorf("management port: %w", err)
	}
	d.managed = l.Addr().String()
	mux := http.NewServeMux()
	mux.Handle(web.Prefix, d.makePages(&cert, token))
	mux.Handle("/", d.api.WithToken(token))
	d.stopTCP = d.api.Serve(l, mux, &cert)
	return nil
}

// Managed returns the TCP address of the management interface; empty if there is none.
func (d *Driver) Managed() string { return d.managed }

// Admin is a client of a running driver's management interface.
type Admin = api.Client

// NewAdmin returns a client of the management interface of the driver whose attach socket is at socket;
// empty: the default.
func NewAdmin(socket string) *Admin { return api.NewClient(socket) }

// The types of the management interface.
type (
	AdapterRequest   = api.AdapterRequest
	LinkRequest      = api.LinkRequest
	SleepRequest     = api.SleepRequest
	Status           = api.Status
	AdapterStatus    = api.AdapterStatus
	InfiniBandStatus = api.InfiniBandStatus
	LinkStatus       = api.LinkStatus
)
