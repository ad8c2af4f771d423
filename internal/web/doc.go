// Package web is the device manager: pages for the adapters with the tabs that the WinOF manuals describe,
// counters as graphs, connections, events and captures. Everything that the pages show and do goes through
// the management interface of package api; nothing is loaded from elsewhere. A session, opened by a
// sign-in link or the token of the management interface, has the rights of the driver's user.
package web
