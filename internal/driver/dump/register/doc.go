// Package register is the register space of an adapter: its engines' tables as numbered dwords, in the text form of mstdump, one
// "0xADDRESS 0xVALUE" a line. One table, Blocks, says what is where; writing, reading and the document follow it.
//
// An address has the port (from 0) in bits 28 to 31, the block in bits 24 to 27, and a byte offset: record i of a block begins at i
// times the block's stride. A file has its ports in order, and of each all dwords of all records in ascending order. The header of a
// port says how many records each block has, and has a checksum of all that the file says of the port.
package register
