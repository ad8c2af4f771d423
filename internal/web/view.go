package web

import (
	"bytes"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// view is the contents of a page.
type view struct {
	Title   string
	Page    string // its name in the navigation
	Tab     string // its name among an adapter's tabs
	Refresh string // where to continue at once
	Notice  string
	Problem string

	Machine, Version string
	Secret           string // of the session; empty: there is none
	Adapters         []api.AdapterStatus
	Adapter          *api.AdapterStatus
	Data             any
}

// request is a request within a session.
type request struct {
	w       http.ResponseWriter
	r       *http.Request
	session *session
}

// serve runs a handler and shows its error.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, h func(*request) error) {
	session, _ := r.Context().Value(sessionKey{}).(*session)
	err := h(&request{w, r, session})
	if err == nil {
		return
	}
	status := http.StatusUnprocessableEntity
	var missing *missingError
	if errors.As(err, &missing) || errors.Is(err, registry.ErrNotFound) {
		status = http.StatusNotFound
	}
	if v, e := s.view(&request{w, r, session}, refusedTitle(status), ""); e == nil && !strings.HasPrefix(r.URL.Path, Prefix+"api/") {
		v.Data = sentence(err.Error())
		s.render(w, status, "refused", v)
		return
	}
	s.refuse(w, r, status, sentence(err.Error()))
}

// refusedTitle returns the heading of an error page.
func refusedTitle(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Not there"
	case http.StatusForbidden, http.StatusUnauthorized:
		return "Not allowed"
	}
	return "That did not work"
}

// missingError says that something does not exist.
type missingError struct{ what string }

func (e *missingError) Error() string { return "there is no " + e.what }

// renewHeader is in the requests of a page that fetches a part of itself again (static/page.js). Such a request may be under way
// when a form is sent, and must not take the notice that is for the next page.
const renewHeader = "X-Renew"

// view creates the view of a page.
func (s *Server) view(q *request, title, page string) (*view, error) {
	v := &view{Title: title, Page: page, Machine: s.cfg.Machine, Version: s.cfg.Version, Secret: q.session.secret}
	if q.r.Header.Get(renewHeader) == "" {
		v.Notice = q.session.told()
	}
	err := s.client.Get(q.r.Context(), "/adapters", nil, &v.Adapters)
	return v, err
}

// adapterView creates the view of a tab of the adapter in the path.
func (s *Server) adapterView(q *request, tab string) (*view, error) {
	name := q.r.PathValue("name")
	v, err := s.view(q, name, "devices")
	if err != nil {
		return nil, err
	}
	for i := range v.Adapters {
		if v.Adapters[i].Name == name {
			v.Adapter, v.Tab = &v.Adapters[i], tab
			return v, nil
		}
	}
	return nil, &missingError{"adapter " + strconv.Quote(name)}
}

// show answers with a page.
func (s *Server) show(q *request, page string, v *view) error {
	status := http.StatusOK
	if v.Problem != "" {
		status = http.StatusUnprocessableEntity
	}
	s.render(q.w, status, page, v)
	return nil
}

// done answers a change by redirecting to the page that shows it.
func (s *Server) done(q *request, notice, path string) error {
	q.session.tell(notice)
	http.Redirect(q.w, q.r, path, http.StatusSeeOther)
	return nil
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	if strings.HasPrefix(r.URL.Path, Prefix+"api/") {
		http.Error(w, text, status)
		return
	}
	s.render(w, status, "refused", &view{Title: refusedTitle(status), Data: text})
}

func (s *Server) render(w http.ResponseWriter, status int, page string, v *view) {
	var b bytes.Buffer // so that an error halfway does not show half a page
	if err := pages()[page].ExecuteTemplate(&b, "layout", v); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails if the reader has gone
}

// pages returns the templates of the pages, each including the layout. They are parsed for the first page that somebody looks at: every
// command of softvpi would take 3 of the 9 ms that its packages need to begin for them.
var pages = sync.OnceValue(parsePages)

func parsePages() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html"))
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err)
	}
	out := map[string]*template.Template{}
	for _, name := range names {
		page := strings.TrimSuffix(strings.TrimPrefix(name, "templates/"), ".html")
		if page != "layout" {
			out[page] = template.Must(template.Must(layout.Clone()).ParseFS(files, name))
		}
	}
	return out
}

var functions = template.FuncMap{
	"adapterURL": adapterURL,
	"count":      count,
	"bits":       bitsText,
	"bytes":      bytesText,
	"percent":    func(share float64) string { return strconv.Itoa(int(100*share+0.5)) + " %" },
	"state":      stateOf,
	"moment":     func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
	"stamp":      func(t time.Time) string { return t.Format(time.RFC3339Nano) },
	"tabs":       func() []tab { return tabs },
	"navigation": func() []tab { return navigation },
}

// tab is a page in the navigation, or a tab of an adapter.
type tab struct{ Name, Path, Title string }

// navigation lists the pages.
var navigation = []tab{
	{"devices", Prefix, "Devices"},
	{"functions", functionsURL, "Functions"},
	{"teams", teamsURL, "Teams"},
	{"counters", Prefix + "counters", "Counters"},
	{"fabric", Prefix + "fabric", "Fabric"},
	{"connections", Prefix + "connections", "Connections"},
	{"events", Prefix + "events", "Events"},
	{"capture", Prefix + "capture", "Capture"},
}

// tabs lists those of an adapter.
var tabs = []tab{
	{"information", "", "Information"},
	{"advanced", "/advanced", "Advanced"},
	{"performance", "/performance", "Performance"},
	{"port", "/port", "Port Protocol"},
	{"qos", "/qos", "QoS"},
}

// adapterURL returns the URL of a page of an adapter.
func adapterURL(name string, rest ...string) string {
	return Prefix + "adapters/" + url.PathEscape(name) + strings.Join(rest, "")
}

// stateOf returns the state of an adapter in a word.
func stateOf(a *api.AdapterStatus) string {
	switch {
	case !a.Enabled:
		return "disabled"
	case a.Up:
		return "up"
	}
	return "down"
}

// count formats a number with spaces between the thousands.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// sentence turns an error text into a sentence.
func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
