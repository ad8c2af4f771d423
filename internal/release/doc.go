// Package release stores words of shared memory in the order of the program: whoever
// sees the new value sees all that was stored before. That is less than what stores of
// sync/atomic promise, which wait until everybody sees them, and many times cheaper where
// the processor keeps stores in order by itself. What is loaded afterwards may be older
// than the store: who has to look at something after it was published uses sync/atomic.
package release
