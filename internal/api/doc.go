// Package api is the driver's management interface: HTTP with JSON, described by an OpenAPI document that is
// made from the Go types (GET /openapi.json). It is served on a unix socket beside the attach socket, where
// the credentials of the peer decide who may change things, and, where asked for, on TCP with TLS and a
// token. Client is its other end. What the requests do is the Driver's.
package api
