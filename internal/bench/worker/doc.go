// Package worker is a program that is told over its standard input what to do: it
// opens an adapter, connects with another worker as often as asked, and moves data
// or does nothing. The benchmarks start workers as processes of their own and read
// how it went from their standard output. Calls and answers are one JSON value
// each; a worker ends when its input does.
package worker
