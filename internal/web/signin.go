package web

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
)

// Link returns a path and query that open one session, and until when they are valid.
func (s *Server) Link() (path string, until time.Time) {
	return "/login?once=" + s.sessions.link(), s.cfg.Now().Add(linkLife)
}

// SignOutAll ends all sessions and voids all links.
func (s *Server) SignOutAll() { s.sessions.clear() }

// login follows a link. It answers with a page that leads on instead of a redirect: browsers send a strict
// cookie only with requests that a page of the same site makes, and the link may be on another site.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if !s.sessions.follow(r.URL.Query().Get("once")) {
		s.refuse(w, r, http.StatusForbidden, "This link has been used, or is too old. Make a new one with: softvpi web")
		return
	}
	s.welcome(w, r)
}

// welcome opens a session.
func (s *Server) welcome(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(), Value: s.sessions.begin(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	s.render(w, http.StatusOK, "welcome", &view{Title: "Signed in", Refresh: Prefix})
}

// needSession redirects people to the page that opens a session, and returns an error to scripts.
func (s *Server) needSession(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, Prefix+"api/") {
		http.Redirect(w, r, Prefix+"signin", http.StatusSeeOther)
		return
	}
	s.refuse(w, r, http.StatusUnauthorized, "Sign in first.")
}

func (s *Server) askSignIn(w http.ResponseWriter, r *http.Request) {
	s.render(w, http.StatusOK, "signin", &view{Title: "Sign in", Data: s.takesToken(r)})
}

// takesToken reports whether the token opens a session: only where nobody else can read it.
func (s *Server) takesToken(r *http.Request) bool { return s.cfg.Token != "" && r.TLS != nil }

// signIn opens a session with the token.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	if !s.takesToken(r) {
		s.refuse(w, r, http.StatusForbidden, "The token opens a session over TLS only.")
		return
	}
	if err := r.ParseForm(); err != nil {
		s.refuse(w, r, http.StatusRequestEntityTooLarge, "The form cannot be read.")
		return
	}
	if subtle.ConstantTimeCompare([]byte(strings.TrimSpace(r.PostForm.Get("token"))), []byte(s.cfg.Token)) != 1 {
		s.render(w, http.StatusForbidden, "signin", &view{Title: "Sign in", Data: true, Problem: "That is not the token."})
		return
	}
	s.welcome(w, r)
}

// signOut ends the session.
func (s *Server) signOut(q *request) error {
	if c, err := q.r.Cookie(s.cookieName()); err == nil {
		s.sessions.end(c.Value)
	}
	http.SetCookie(q.w, &http.Cookie{Name: s.cookieName(), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: q.r.TLS != nil})
	http.Redirect(q.w, q.r, Prefix+"signin", http.StatusSeeOther)
	return nil
}
