package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/paths"
	"github.com/softvpi/softvpi/internal/web"
)

// Manage says where the management interface is served on TCP: with TLS, to whoever sends the token. Files
// that do not exist are made: the certificate signs itself, token and key are for the driver's user alone.
type Manage struct {
	Listen      string `json:"listen"`                // address and port
	Certificate string `json:"certificate,omitempty"` // PEM file; empty: api-cert.pem in the state directory
	Key         string `json:"key,omitempty"`         // PEM file; empty: api-key.pem in the state directory
	TokenFile   string `json:"token_file,omitempty"`  // empty: api-token in the state directory
}

// complete fills in the files.
func (m *Manage) complete(state string) error {
	if m == nil {
		return nil
	}
	_, port, err := net.SplitHostPort(m.Listen)
	if _, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil {
		return fieldError("manage.listen", fmt.Sprintf("%q", m.Listen), "an address and a port, such as 127.0.0.1:7471")
	}
	if (m.Certificate == "") != (m.Key == "") {
		return fieldError("manage.certificate", fmt.Sprintf("%q with the key %q", m.Certificate, m.Key), "both files, or neither")
	}
	for _, f := range []struct {
		path *string
		name string
	}{{&m.Certificate, "api-cert.pem"}, {&m.Key, "api-key.pem"}, {&m.TokenFile, "api-token"}} {
		if *f.path == "" {
			*f.path = filepath.Join(state, f.name)
		}
	}
	return nil
}

// readersMode is the mode of the management socket.
func readersMode(readers string) (fs.FileMode, error) {
	switch readers {
	case "", "owner":
		return 0o600, nil
	case "group":
		return 0o660, nil
	case "everyone":
		return 0o666, nil
	}
	return 0, fieldError("readers", fmt.Sprintf("%q", readers), "owner, group, everyone")
}

// manage serves the management interface.
func (d *Driver) manage() error {
	d.counters = counters.New(counters.Config{Read: d.words, CPUs: runtime.NumCPU()})
	d.api = api.New(api.Config{Driver: d, Version: d.version, Log: d.log, Events: d.events, Counters: d.counters})
	mode, err := readersMode(d.cfg.Readers)
	if err != nil {
		return err
	}
	l, err := listen(paths.Management(d.cfg.Socket), mode)
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

func (d *Driver) manageTCP(m Manage) error {
	cert, err := api.LoadCertificate(m.Certificate, m.Key, m.Listen)
	if err != nil {
		return &ConfigError{fmt.Sprintf("manage.certificate %s, manage.key %s", m.Certificate, m.Key), err}
	}
	token, err := api.LoadToken(m.TokenFile)
	if err != nil {
		return &ConfigError{"manage.token_file", err}
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

// Managed is the TCP address of the management interface; empty where it has none.
func (d *Driver) Managed() string { return d.managed }

// Admin talks to the management interface of a running driver.
type Admin = api.Client

// NewAdmin returns the management interface of the driver whose attach socket is at socket; empty: the
// default.
func NewAdmin(socket string) *Admin { return api.NewClient(socket) }

// ErrNotRunning is a driver that does not answer.
var ErrNotRunning = api.ErrNotRunning

// The types of the management interface.
type (
	AdapterRequest   = api.AdapterRequest
	LinkRequest      = api.LinkRequest
	Status           = api.Status
	AdapterStatus    = api.AdapterStatus
	InfiniBandStatus = api.InfiniBandStatus
	GIDStatus        = api.GIDStatus
	QPStatus         = api.QPStatus
	LinkStatus       = api.LinkStatus
	ProgramStatus    = api.ProgramStatus
)
