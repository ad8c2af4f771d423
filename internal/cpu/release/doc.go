// Package release stores words of shared memory in program order: whoever sees the new value also sees all
// earlier stores. That is less than the stores of sync/atomic guarantee, which wait until every processor
// sees them, and many times cheaper on processors that keep stores in order by themselves. Later loads may
// be executed before the store: code that must load something after publishing uses sync/atomic.
package release
