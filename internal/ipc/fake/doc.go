// Package fake has a driver's adapters that do nothing, for the tests of both sides of the attachment: they see what
// arrives, and tests decide what happens.
package fake
