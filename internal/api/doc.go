// Package api is the driver's management interface: HTTP with JSON, described by an OpenAPI document that
// is generated from the Go types (GET /openapi.json). It is served on a unix socket next to the attach
// socket, where the credentials of the peer decide who may make changes, and optionally on TCP with TLS
// and a token. Client is the other end. A Driver implements the requests.
package api
