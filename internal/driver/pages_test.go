package driver

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/web"
)

// visitor is a browser without scripts: it keeps cookies and follows redirections.
func visitor(t *testing.T, trust *tls.Config) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
}

// visit returns the status of an answer and the path that redirections led to.
func visit(t *testing.T, c *http.Client, address string, form url.Values) (status int, path string) {
	t.Helper()
	get := func() (*http.Response, error) { return c.Get(address) }
	if form != nil {
		get = func() (*http.Response, error) { return c.PostForm(address, form) }
	}
	r, err := get()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode, r.Request.URL.Path
}

// TestLinksToThePages: a link opens one session, on a port that is opened with the first link. Closing the pages ends
// the sessions, invalidates the links and closes the port until the next link.
func TestLinksToThePages(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.SkipSelfCheck = true
	d := start(t, cfg)
	defer stop(t, d)
	if at := d.Pages(); at != "" {
		t.Fatalf("the pages are served at %s before a link was made", at)
	}
	admin, browser := NewAdmin(cfg.Socket), visitor(t, nil)
	link, err := admin.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := d.Pages()
	if !strings.HasPrefix(at, config.PagesHost+":") || !strings.HasPrefix(link.URL, "http://"+at+"/login?once=") {
		t.Fatalf("link %s to the pages at %s", link.URL, at)
	}
	home := "http://" + at + web.Prefix
	if _, path := visit(t, browser, home, nil); path != web.Prefix+"signin" {
		t.Errorf("without a session the page is %s, want the sign-in", path)
	}
	if status, _ := visit(t, browser, link.URL, nil); status != http.StatusOK {
		t.Errorf("the link has status %d, want 200", status)
	}
	if status, path := visit(t, browser, home, nil); status != http.StatusOK || path != web.Prefix {
		t.Errorf("within the session: status %d at %s, want 200 at the pages", status, path)
	}
	if status, _ := visit(t, visitor(t, nil), link.URL, nil); status != http.StatusForbidden {
		t.Errorf("a link used again: status %d, want forbidden", status)
	}
	unused, err := admin.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.ClosePages(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", at); err == nil {
		c.Close()
		t.Errorf("the pages still answer at %s", at)
	}
	if err := admin.ClosePages(t.Context()); err != nil {
		t.Errorf("pages that are closed already: %v", err)
	}
	if _, err := admin.Link(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := "http://" + d.Pages()
	if status, _ := visit(t, visitor(t, nil), again+strings.TrimPrefix(unused.URL, "http://"+at), nil); status != http.StatusForbidden {
		t.Errorf("a link from before the pages were closed: status %d, want forbidden", status)
	}
	if _, path := visit(t, browser, again+web.Prefix, nil); path != web.Prefix+"signin" {
		t.Errorf("a session from before the pages were closed leads to %s, want the sign-in", path)
	}
}

// TestSignInOverTLS: the token opens a session over TLS, whose cookie is sent over TLS only; a wrong token does not.
func TestSignInOverTLS(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.SkipSelfCheck = true
	cfg.Manage = &config.Manage{Listen: "127.0.0.1:0"}
	d := start(t, cfg)
	defer stop(t, d)
	token, err := os.ReadFile(filepath.Join(cfg.State, "api-token"))
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(cfg.State, "api-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trust := &tls.Config{RootCAs: x509.NewCertPool()}
	if !trust.RootCAs.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate in api-cert.pem")
	}
	browser, home := visitor(t, trust), "https://"+d.Managed()+web.Prefix
	for _, c := range []struct {
		token  string
		status int
		path   string // of the pages after that
	}{
		{"", http.StatusForbidden, web.Prefix + "signin"},
		{"wrong", http.StatusForbidden, web.Prefix + "signin"},
		{string(token), http.StatusOK, web.Prefix},
	} {
		r, err := browser.PostForm(home+"signin", url.Values{"token": {c.token}})
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != c.status {
			t.Errorf("token %q: %d, want %d", c.token, r.StatusCode, c.status)
		}
		for _, x := range r.Cookies() {
			if !x.Secure || !x.HttpOnly || x.SameSite != http.SameSiteStrictMode {
				t.Errorf("the cookie %v is not secure, HTTP only and same-site strict", x)
			}
		}
		if _, path := visit(t, browser, home, nil); path != c.path {
			t.Errorf("token %q leads to %s, want %s", c.token, path, c.path)
		}
	}
	// On the loopback interface without TLS the token opens no session.
	link, err := NewAdmin(cfg.Socket).Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := visit(t, visitor(t, nil), "http://"+at.Host+web.Prefix+"signin",
		url.Values{"token": {string(token)}}); status != http.StatusForbidden {
		t.Errorf("the token without TLS: status %d, want forbidden", status)
	}
}
