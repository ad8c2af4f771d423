package web

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"embed"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/api/server"
)

// Prefix is where the pages are.
const Prefix = "/web/"

// maxForm limits the bytes of a form.
const maxForm = 64 << 10

// Config configures the pages.
type Config struct {
	// API is the management interface through which the pages show and change things.
	API *server.Server
	// Machine is the name of the machine, Version that of the driver.
	Machine, Version string
	// Token opens a session over TLS; empty: no token does.
	Token string
	// Certificate is that of the TLS listener: its names are those under which the pages may be requested.
	Certificate *tls.Certificate
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Server serves the pages.
type Server struct {
	cfg         Config
	id          string // distinguishes this server from others at the same address
	client      *api.Client
	names       *x509.Certificate // nil: no names
	sessions    *sessions
	readings    readings
	qosReadings qosReadings
	open        *http.ServeMux // for everybody
	inside      *http.ServeMux // within a session
}

//go:embed static templates
var files embed.FS

// New creates the pages of a driver.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, id: rand.Text()[:8], client: cfg.API.Local(), sessions: newSessions(cfg.Now), open: http.NewServeMux(),
		inside: http.NewServeMux()}
	if c := cfg.Certificate; c != nil {
		s.names = c.Leaf
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // the embedded files are always there
	}
	s.open.Handle("GET "+Prefix+"static/", http.StripPrefix(Prefix+"static/", http.FileServerFS(static)))
	s.open.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, Prefix, http.StatusSeeOther) })
	s.open.HandleFunc("GET /login", s.login)
	s.open.HandleFunc("GET "+Prefix+"signin", s.askSignIn)
	s.open.HandleFunc("POST "+Prefix+"signin", s.signIn)
	s.open.HandleFunc("/", s.within)
	s.routes()
	return s
}

func (s *Server) routes() {
	handle := func(pattern string, h func(*request) error) {
		method, path, _ := strings.Cut(pattern, " ")
		s.inside.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, h) })
	}
	handle("POST signout", s.signOut)
	handle("GET {$}", s.devices)
	handle("GET adapters/{name}", s.information)
	handle("GET adapters/{name}/information.txt", s.saveInformation)
	handle("POST adapters/{name}/state", s.setState)
	handle("POST adapters/{name}/restart", s.restart)
	handle("GET adapters/{name}/advanced", s.advanced)
	handle("POST adapters/{name}/advanced", s.setKey)
	handle("GET adapters/{name}/performance", s.performance)
	handle("POST adapters/{name}/performance", s.tune)
	handle("GET adapters/{name}/port", s.portProtocol)
	handle("POST adapters/{name}/port", s.setPortProtocol)
	handle("GET adapters/{name}/qos", s.qos)
	handle("POST adapters/{name}/qos", s.setQoS)
	handle("GET functions", s.functions)
	handle("POST functions", s.changeFunction)
	handle("GET teams", s.teams)
	handle("POST teams", s.changeTeam)
	handle("GET fabric", s.fabric)
	handle("POST fabric", s.commandFabric)
	handle("GET connections", s.connections)
	handle("GET counters", s.counters)
	handle("GET api/counters", s.pass("/counters"))
	handle("GET api/counters/sets", s.pass("/counters/sets"))
	handle("GET capture", s.capture)
	handle("POST capture", s.startCapture)
	handle("POST capture/{id}/stop", s.stopCapture)
	handle("GET events", s.events)
	handle("GET api/events/follow", s.pass("/events/follow"))
}

// ServeHTTP serves the pages.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would be sent without their origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.isOurName(r) {
		s.refuse(w, r, http.StatusMisdirectedRequest, "These pages are not served under that name.")
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		s.refuse(w, r, http.StatusForbidden, "The request comes from another site.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	s.open.ServeHTTP(w, r)
}

// isOurName reports whether the request addresses these pages by a name of this machine. This rejects
// pages of other sites whose name was made to point here (DNS rebinding). Without TLS the names are those
// of the loopback interface, with any port, because a tunnel may change it; with TLS those of the
// certificate, and addresses.
func (s *Server) isOurName(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if r.TLS == nil {
		return name == "127.0.0.1" || name == "localhost"
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	return s.names != nil && s.names.VerifyHostname(name) == nil
}

// within serves what requires a session. Forms must carry its secret.
func (s *Server) within(w http.ResponseWriter, r *http.Request) {
	session := s.session(r)
	if session == nil {
		s.needSession(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := r.ParseForm(); err != nil {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				s.refuse(w, r, http.StatusRequestEntityTooLarge, "The form is too large.")
				return
			}
			s.refuse(w, r, http.StatusBadRequest, "The form cannot be read.")
			return
		}
		if !session.owns(r.PostForm.Get("csrf")) {
			s.refuse(w, r, http.StatusForbidden, "The form does not belong to this session. Go back, load the page again and repeat.")
			return
		}
	}
	s.inside.ServeHTTP(w, r.WithContext(withSession(r.Context(), session)))
}
