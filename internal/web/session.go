package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api/server"
)

const (
	maxSessions = 64
	maxLinks    = 32
	sessionIdle = 12 * time.Hour   // an unused session ends
	linkLife    = 10 * time.Minute // an unused link becomes void
)

// session is a browser that is signed in.
type session struct {
	secret string // carried by its forms

	mu     sync.Mutex
	used   time.Time
	notice string // for the next page
}

// owns reports whether a form carries the session's secret.
func (s *session) owns(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(s.secret)) == 1
}

// tell stores a text for the next page.
func (s *session) tell(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = text
}

// told returns the text for this page and removes it.
func (s *session) told() (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, s.notice = s.notice, ""
	return text
}

// sessions holds the open sessions by the values of their cookies, and the links not used yet.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	open  map[string]*session
	links map[string]time.Time // when they were created
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, open: map[string]*session{}, links: map[string]time.Time{}}
}

// begin opens a session and returns the value of its cookie. If there are too many, the one unused for
// longest ends.
func (s *sessions) begin() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := rand.Text()
	s.open[id] = &session{secret: rand.Text(), used: s.now()}
	for len(s.open) > maxSessions {
		oldest, at := "", time.Time{}
		for other, x := range s.open {
			if used := x.lastUse(); other != id && (oldest == "" || used.Before(at)) {
				oldest, at = other, used
			}
		}
		delete(s.open, oldest)
	}
	return id
}

func (s *session) lastUse() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// find returns the session with that cookie, or nil.
func (s *sessions) find(id string) *session {
	s.mu.Lock()
	x := s.open[id]
	s.mu.Unlock()
	if x == nil {
		return nil
	}
	now := s.now()
	x.mu.Lock()
	over := now.Sub(x.used) > sessionIdle
	x.used = now
	x.mu.Unlock()
	if over {
		s.end(id)
		return nil
	}
	return x
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// clear ends all sessions and voids all links.
func (s *sessions) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
	clear(s.links)
}

// link returns the secret of a new link that opens one session.
func (s *sessions) link() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	word := rand.Text()
	s.links[word] = s.now()
	for len(s.links) > maxLinks {
		oldest := ""
		for other, at := range s.links {
			if other != word && (oldest == "" || at.Before(s.links[oldest])) {
				oldest = other
			}
		}
		delete(s.links, oldest)
	}
	return word
}

// follow uses up a link and reports whether it was valid.
func (s *sessions) follow(word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.links[word]
	delete(s.links, word)
	return ok && s.now().Sub(made) <= linkLife
}

type sessionKey struct{}

func withSession(ctx context.Context, s *session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// cookieName returns the name of the session's cookie. Browsers share cookies among all ports of the
// loopback address, where other drivers may be.
func (s *Server) cookieName() string { return "softvpi-" + s.id }

// session returns the session of a request; nil: it has none.
func (s *Server) session(r *http.Request) *session {
	c, err := r.Cookie(s.cookieName())
	if err != nil {
		return nil
	}
	return s.sessions.find(c.Value)
}

// withReading allows a session's request to read through the management interface.
func withReading(ctx context.Context) context.Context {
	return server.WithAccess(ctx, server.ReadAccess)
}
