// Package spool keeps the records of a trace in a file of limited size, circular as the manual's trace file is (WinOF 5.50, 6.8), so
// that they outlive a driver that is killed. A Writer appends frames of records, and Read gets back all that are whole.
//
// The file is a page of 4096 bytes with the Header, and behind it blocks of 64 KiB with frames one behind the other; a frame is within
// a block. When the last block is full the first is written again, over what it has. A frame is
//
//	 0  4  magic
//	 4  4  number of records, n
//	 8  8  number of the frame, from 0, one more than that of the frame before
//	16  8  records of all frames before it
//	24  8  records that were lost before it, because they came too fast
//	32  4  CRC-32C of the frame, with zeros here
//	36  4  zero
//	40     n records of 40 bytes
//
// with little-endian numbers. In a block those frames count that follow each other without a gap from its start on: what comes behind
// them was never written, is half written, or is left of an earlier round.
package spool
