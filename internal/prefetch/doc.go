// Package prefetch asks for lines of memory that are used soon, so that the
// processor goes on while they come: from another processor's cache that takes as
// long as some hundred instructions. What is asked for need not be there, and
// nothing depends on it.
package prefetch
