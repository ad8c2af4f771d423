// Package counters is what those who read counters have: the sets of the catalogue with their instances and snapshots, paths that select
// (typeperf's), rates over a reader's own interval, and output formats (typeperf's CSV, JSON, tables). Package collector takes the
// snapshots.
package counters
