package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/events"
)

// described are the paths that tools and pages use; the API's description must have them all.
var described = []string{
	"/status", "/adapters", "/adapters/{name}", "/adapters/{name}/state", "/adapters/{name}/restart", "/adapters/{name}/link",
	"/adapters/{name}/settings", "/adapters/{name}/settings/{key}", "/programs", "/connections", "/catalogue/keys",
	"/registry/keys", "/registry/value", "/registry/key", "/registry/changes", "/registry/export", "/registry/import",
	"/counters", "/counters/sets", "/counters/reset", "/metrics", "/events", "/events/follow", "/capture", "/capture/{id}", "/captures",
	"/links",
}

// TestReadersChangeNothing: whoever may open the socket may read; only the driver's user and root may change things.
func TestReadersChangeNothing(t *testing.T) {
	f := newFake()
	log := events.Open(events.Config{})
	defer log.Close()
	s := New(Config{Driver: f, Events: log, Counters: collector.New(collector.Config{Read: func() []collector.Adapter { return nil }})})
	defer s.Close()
	try := func(a access, method, path string) int {
		r, err := http.NewRequest(method, "http://driver"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		w := &recorder{header: http.Header{}}
		s.handler.ServeHTTP(w, r.WithContext(WithAccess(context.Background(), a)))
		return w.status
	}
	spec, err := s.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(spec, &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range described {
		if doc.Paths[path] == nil {
			t.Errorf("the description has no %s", path)
		}
	}
	for path, methods := range doc.Paths {
		path = strings.NewReplacer("{name}", "Ethernet%201", "{key}", "x").Replace(path)
		for method := range methods {
			method = strings.ToUpper(method)
			if got := try(noAccess, method, path); got != 401 {
				t.Errorf("a stranger, %s %s: %d", method, path, got)
			}
			if path == "/events/follow" && method == "GET" {
				continue // it does not end; see TestFollowEvents
			}
			want := method != "GET" || strings.HasPrefix(path, "/capture")
			if got := try(ReadAccess, method, path) == 403; got != want {
				t.Errorf("a reader, %s %s: refused %v, want %v", method, path, got, want)
			}
			if got := try(ChangeAccess, method, path); got == 401 || got == 403 {
				t.Errorf("the user, %s %s: %d", method, path, got)
			}
		}
	}
	if got := try(ReadAccess, "GET", "/capture?adapter=x"); got != 403 {
		t.Errorf("a reader captures: %d", got)
	}
}

// recorder is the writer of an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) { r.WriteHeader(200); return r.body.Write(b) }

// bearer sends a token with each request.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// tlsClient returns a client of the interface at a TCP address.
func tlsClient(address string, trust *tls.Config, token string) *api.Client {
	return api.NewClientOver(address, "https://"+address, bearer{&http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}, token})
}

func TestTLSAndToken(t *testing.T) {
	b, dir := serve(t, Config{}), t.TempDir()
	certFile, keyFile, tokenFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "token")
	cert, err := LoadCertificate(certFile, keyFile, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadCertificate(certFile, keyFile, "127.0.0.1:0")
	if err != nil || !bytes.Equal(again.Certificate[0], cert.Certificate[0]) {
		t.Errorf("the certificate is another one at the second start: %v", err)
	}
	token, err := LoadToken(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := LoadToken(tokenFile); err != nil || same != token {
		t.Errorf("the token is another one at the second start: %v", err)
	}
	for _, secret := range []string{keyFile, tokenFile} {
		if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", secret, info.Mode(), err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := b.server.Serve(l, b.server.WithToken(token), &cert)
	defer stop()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(certFile)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	trust := &tls.Config{RootCAs: pool}
	if s, err := tlsClient(l.Addr().String(), trust, token).Status(t.Context()); err != nil || s.Version != "test" {
		t.Errorf("with the token: %v", err)
	}
	if err := tlsClient(l.Addr().String(), trust, token).RestartAdapter(t.Context(), "x"); err != nil {
		t.Errorf("a change with the token: %v", err)
	}
	capture := api.CaptureRequest{Adapter: "Ethernet 1"}
	var field *api.FieldError
	if _, err := tlsClient(l.Addr().String(), trust, token).CaptureToFile(t.Context(), capture, "/tmp/x"); !errors.As(err, &field) ||
		field.Field != "file" {
		t.Errorf("a file of the driver's machine with the token: %v", err)
	}
	if _, err := b.client.CaptureToFile(t.Context(), capture, "/tmp/x"); err != nil {
		t.Errorf("the same on the unix socket: %v", err)
	}
	for _, wrong := range []string{"", token[1:], token + "x"} {
		if _, err := tlsClient(l.Addr().String(), trust, wrong).Status(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "token is missing or wrong") {
			t.Errorf("with token %q: %v", wrong, err)
		}
	}
	if err := os.Chmod(tokenFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadToken(tokenFile); err == nil || !strings.Contains(err.Error(), "allowed: 0600") {
		t.Errorf("a token file that everybody can read: error %v, want the allowed mode", err)
	}
	resp, err := http.Get("http://" + l.Addr().String() + "/status") // without TLS
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", resp.Status)
		}
	}
}
