// Package client is a program's side of its attachment: Dial attaches; a Client carries commands to the driver, has the
// rings that the driver made, waits for what happens in them, and knows the neighbours on the direct path. Linux only for
// now; elsewhere Dial says so.
package client
