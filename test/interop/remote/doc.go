// Package remote runs programs on the far side of a stream: the tests start the
// guest's programs through it, write to their standard input and read what they
// print while others run beside them.
//
// A stream carries one program. The caller sends one line of JSON, the Command,
// and then frames; the runner sends frames. A frame is a type byte, a length of
// four bytes, low byte first, and the data.
package remote
