// Package prefetch requests cache lines that will be used soon, so that the processor can continue while
// they arrive: from another processor's cache that takes as long as some hundred instructions. The address
// need not be valid, and nothing depends on the result.
package prefetch
