// Package web is the device manager: the pages of the adapters with the tabs that the WinOF manuals describe,
// counters as graphs, connections, events and captures. Everything that the pages show and do goes through the
// management interface of package api; nothing is loaded from elsewhere. A session, which a sign-in link or the token
// of the management interface opens, may do what the driver's user may.
package web
