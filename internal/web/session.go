package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

const (
	maxSessions = 64
	maxLinks    = 32
	sessionIdle = 12 * time.Hour   // a session that nobody uses ends
	linkLife    = 10 * time.Minute // a link that nobody follows is void
)

// session is one browser that may use the pages.
type session struct {
	secret string // that its forms carry

	mu     sync.Mutex
	used   time.Time
	notice string // for the next page
}

// owns says whether a form carries the session's secret.
func (s *session) owns(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(s.secret)) == 1
}

// tell keeps a text for the next page.
func (s *session) tell(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = text
}

// told takes the text for this page.
func (s *session) told() (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, s.notice = s.notice, ""
	return text
}

// sessions are those that are open, by the values of their cookies, and the links that nobody has followed yet.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	open  map[string]*session
	links map[string]time.Time // when they were made
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, open: map[string]*session{}, links: map[string]time.Time{}}
}

// begin opens a session and returns the value of its cookie. Where there are too many, the one that was not used for
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

// find returns the session with that cookie; nil: there is none.
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

// link makes the word of a link that opens one session.
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

// follow uses a link up and says whether it was good.
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

// cookieName is the name of the session's cookie. Browsers keep one set of cookies for all ports of the loopback
// address, where other drivers may be.
func (s *Server) cookieName() string { return "softvpi-" + s.id }

// session is that of a request; nil: it has none.
func (s *Server) session(r *http.Request) *session {
	c, err := r.Cookie(s.cookieName())
	if err != nil {
		return nil
	}
	return s.sessions.find(c.Value)
}

// withReading lets a request of a session read through the management interface.
func withReading(ctx context.Context) context.Context {
	return api.WithAccess(ctx, api.ReadAccess)
}
