// Package worker is a program that is controlled over its standard input: it opens an adapter, connects to
// another worker as often as requested, and moves data or stays idle. The benchmarks start workers as
// processes of their own and read the results from their standard output. Calls and answers are one JSON
// value each; a worker ends when its input does.
package worker
