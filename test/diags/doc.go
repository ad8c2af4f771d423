// Package diags holds the tests that compare the InfiniBand diagnostic tools with Debian's: each of both on one fabric
// of the real ibsim, which the real OpenSM has brought up.
package diags
