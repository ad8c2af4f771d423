package server

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// access is what a client may do.
type access uint8

// The levels of access.
const (
	noAccess access = iota
	ReadAccess
	ChangeAccess // reading too
)

type accessKey struct{}

// accessOf is what the client of a request may do.
func accessOf(ctx context.Context) access {
	a, _ := ctx.Value(accessKey{}).(access)
	return a
}

// WithAccess is a context of a client that may do so much.
func WithAccess(ctx context.Context, a access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

type remoteKey struct{}

// isRemote reports whether a request came over TCP with a token, possibly from another machine: its sender
// has no access to this machine's files.
func isRemote(ctx context.Context) bool { return ctx.Value(remoteKey{}) != nil }

// peerAccess decides by the credentials of the process at the other end of a unix socket: the driver's own
// user and root may change things, who else was let to the socket may read.
func peerAccess(c net.Conn) access {
	if l, limited := c.(*limitedConn); limited {
		c = l.Conn
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return noAccess
	}
	p, err := peer.Of(u)
	if err != nil {
		return noAccess
	}
	if p.Owner() {
		return ChangeAccess
	}
	return ReadAccess
}

// tokenAccess grants full access to requests with the token.
func tokenAccess(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="softvpi"`)
			refuse(w, http.StatusUnauthorized, "the token is missing or wrong; allowed: Authorization: Bearer, with the token of the token file")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(WithAccess(r.Context(), ChangeAccess), remoteKey{}, true)))
	})
}

// guard refuses requests that exceed the client's access.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch have := accessOf(r.Context()); {
		case have >= needed(r):
			next.ServeHTTP(w, r)
		case have == noAccess:
			refuse(w, http.StatusUnauthorized, "the client cannot be identified")
		default:
			refuse(w, http.StatusForbidden, api.ErrNotAllowed.Error())
		}
	})
}

// needed is the access that a request takes. A capture shows what programs send to each other.
func needed(r *http.Request) access {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if reads && !strings.HasPrefix(r.URL.Path, "/capture") {
		return ReadAccess
	}
	return ChangeAccess
}
