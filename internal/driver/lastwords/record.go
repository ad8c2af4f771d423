package lastwords

import (
	"bytes"
	"encoding/binary"
	"time"
)

// Command is a command in the file.
type Command struct {
	Began   time.Time
	Took    time.Duration
	Opcode  uint16
	Failure uint32 // a command.Code; 0: none
	Adapter int    // -1: none, or not known
	PID     int
	Program string // its first 28 bytes
	// Running says that the driver died while it carried the command out.
	Running bool
}

// Waits is the Failure of a command that could not be carried out yet and comes again.
const Waits = ^uint32(0)

// The file is a header and a ring of records, all numbers little-endian. A record is
//
//	0 sequence number from 1 (0: empty)   8 began, Unix ns   16 took, ns (^0: running)
//	24 process ID   28 failure   32 opcode, 16 bits   34 adapter + 1, 16 bits   36 program, 28 bytes
const (
	magic      = "VPILAST1"
	headerSize = 64
	recordSize = 64
	// Kept is how many commands the file has room for.
	Kept = 1024

	running = ^uint64(0)
)

func encode(seq uint64, c *Command) (b [recordSize]byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], seq)
	le.PutUint64(b[8:], uint64(c.Began.UnixNano()))
	if le.PutUint64(b[16:], uint64(c.Took)); c.Running {
		le.PutUint64(b[16:], running)
	}
	le.PutUint32(b[24:], uint32(c.PID))
	le.PutUint32(b[28:], c.Failure)
	le.PutUint16(b[32:], c.Opcode)
	le.PutUint16(b[34:], uint16(c.Adapter+1))
	copy(b[36:], c.Program)
	return b
}

// decode returns a record's command and sequence number; 0: there is none.
func decode(b []byte) (seq uint64, c Command) {
	le := binary.LittleEndian
	c = Command{
		Began: time.Unix(0, int64(le.Uint64(b[8:]))), Took: time.Duration(le.Uint64(b[16:])), PID: int(le.Uint32(b[24:])),
		Failure: le.Uint32(b[28:]), Opcode: le.Uint16(b[32:]), Adapter: int(le.Uint16(b[34:])) - 1,
		Program: string(bytes.TrimRight(b[36:recordSize], "\x00")),
	}
	if le.Uint64(b[16:]) == running {
		c.Running, c.Took = true, 0
	}
	return le.Uint64(b), c
}

// Commands returns the commands in a file, the oldest first. What is no file of commands, or ends in the middle of a record, has
// those that are whole.
func Commands(file []byte) (list []Command) {
	if len(file) < headerSize || string(file[:len(magic)]) != magic {
		return nil
	}
	type numbered struct {
		seq uint64
		Command
	}
	var all []numbered
	for b := file[headerSize:]; len(b) >= recordSize && len(all) < Kept; b = b[recordSize:] {
		if seq, c := decode(b); seq != 0 {
			all = append(all, numbered{seq, c})
		}
	}
	first := 0 // where the ring begins
	for i := 1; i < len(all); i++ {
		if all[i].seq < all[i-1].seq {
			first = i
			break
		}
	}
	for i := range all {
		list = append(list, all[(first+i)%len(all)].Command)
	}
	return list
}
