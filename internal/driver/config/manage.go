package config

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// Manage configures serving the management interface on TCP: with TLS, to clients that send the token.
// Files that do not exist are created: the certificate is self-signed, token and key are readable by the
// driver's user only.
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
		return api.Wrong("manage.listen", fmt.Sprintf("%q", m.Listen), "an address and a port, such as 127.0.0.1:7471")
	}
	if (m.Certificate == "") != (m.Key == "") {
		return api.Wrong("manage.certificate", fmt.Sprintf("%q with the key %q", m.Certificate, m.Key), "both files, or neither")
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

// checkAudience checks that a field names an audience.
func checkAudience(field, name string) error {
	if _, ok := peer.ParseAudience(name); !ok {
		return api.Wrong(field, strconv.Quote(name), peer.Audiences)
	}
	return nil
}

// ReadersAudience returns whom the management socket of a complete configuration is for.
func (c *Config) ReadersAudience() peer.Audience { return named(c.Readers) }

// ProgramsAudience returns whose programs may attach.
func (c *Config) ProgramsAudience() peer.Audience { return named(c.Programs) }

// named returns the audience of that name; Complete has checked that there is one.
func named(name string) peer.Audience {
	a, _ := peer.ParseAudience(name)
	return a
}

// PagesHost is the address on which the pages are served without TLS.
const PagesHost = "127.0.0.1"

// checkPages checks the address for the pages: without TLS only the loopback interface is allowed.
func checkPages(listen string) error {
	if listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host != PagesHost {
		return api.Wrong("web", strconv.Quote(listen), "127.0.0.1 and a port, such as 127.0.0.1:7472; elsewhere the pages are served with TLS, by manage")
	}
	return nil
}
