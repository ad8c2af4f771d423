package driver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/web"
)

// pages are those of the device manager. They are served on the loopback interface once the configuration
// or `softvpi web` asks for it, and next to the management interface if that is served on TCP.
type pages struct {
	mu     sync.Mutex
	plain  *web.Server // on the loopback interface
	at     string      // the address; empty: not served
	stop   func() error
	closed bool
}

// makePages creates the pages, with a certificate and a token if they are served with TLS.
func (d *Driver) makePages(cert *tls.Certificate, token string) *web.Server {
	machine, err := os.Hostname()
	if err != nil || machine == "" {
		machine = "this machine"
	}
	return web.New(web.Config{API: d.api, Machine: machine, Version: d.version, Certificate: cert, Token: token})
}

// openPages serves the pages on the loopback interface unless they already are.
func (d *Driver) openPages(listen string) error {
	p := &d.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.at != "" {
		return nil
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("device manager pages: %w", err)
	}
	if p.plain == nil {
		p.plain = d.makePages(nil, "")
	}
	p.at, p.stop = l.Addr().String(), d.api.Serve(l, p.plain, nil)
	return nil
}

// Pages returns the address of the device manager on the loopback interface; empty: it is not served.
func (d *Driver) Pages() string {
	d.pages.mu.Lock()
	defer d.pages.mu.Unlock()
	return d.pages.at
}

// MakeLink returns a link that opens a session.
func (d *Driver) MakeLink() (l api.Link, err error) {
	listen := d.cfg.Web
	if listen == "" {
		listen = net.JoinHostPort(config.PagesHost, "0")
	}
	if err := d.openPages(listen); err != nil {
		return l, err
	}
	p := &d.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == "" {
		return l, errors.New("the device manager pages are closed")
	}
	path, until := p.plain.Link()
	return api.Link{URL: "http://" + p.at + path, Until: until}, nil
}

// close ends all sessions, and stops the pages on the loopback interface until somebody asks for them
// again.
func (p *pages) close(last bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || last
	if p.at == "" {
		return nil
	}
	p.plain.SignOutAll()
	p.at = ""
	return p.stop()
}

// ClosePages ends all sessions of the device manager, and closes its port until the next request for a
// link.
func (d *Driver) ClosePages() error { return d.pages.close(false) }
