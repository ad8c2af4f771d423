// Package server serves the driver's management interface (package api). It is served on a unix socket next to the attach socket, where
// the credentials of the peer decide who may make changes, and optionally on TCP with TLS and a token. A Driver implements the requests;
// what a driver need not have is an interface of its own (TeamSource, VLANSource), served if the Driver has it.
package server
