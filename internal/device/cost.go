package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/handle"
)

// What an object of each kind takes of this process's memory, with the tables and maps that it is in, in
// bytes; of a queue pair and a CM id also what they take once they are connected. A test measures that they
// do not take more. Rings and segments count where they are created.
var costs = [command.KindRSS + 1]struct {
	bytes uint64
	name  string
}{
	command.KindPD:      {192, "a PD"},
	command.KindMemory:  {512, "a memory region"},
	command.KindWindow:  {384, "a memory window"},
	command.KindCQ:      {1024, "a CQ"},
	command.KindSRQ:     {768, "an SRQ"},
	command.KindQP:      {6 << 10, "a QP"},
	command.KindAH:      {512, "an address handle"},
	command.KindCM:      {5 << 10, "a CM id"},
	command.KindChannel: {channelBytes, "a channel"},
	command.KindDM:      {512, "device memory"},
	command.KindXRCD:    {512, "an XRC domain"},
	command.KindFlow:    {1024, "a flow"},
	command.KindRSS:     {40 << 10, "a spreading of frames"}, // the tables of its hash
}

// channelBytes is what a channel takes of its descriptor (the 64 KB of a pipe), the stack and the buffer
// of the goroutine that fills it, and the events that it may have waiting before more are charged for.
const channelBytes = 128 << 10

// requestBytes is what the engine keeps of a send request that it has taken and not completed, and
// requestsTaken how many of them one queue pair can have.
const (
	requestBytes  = 1 << 10
	requestsTaken = 1 << 10
)

// requestsOf returns what the requests of a queue pair take beside the pair, in bytes.
func requestsOf(depth uint32) uint32 { return min(depth, requestsTaken) * requestBytes }

// owner returns who pays for the objects of a kind.
func (c *ClientConfig) owner(kind command.Kind) handle.Owner {
	return handle.Owner{Account: c.Account, Bytes: costs[kind].bytes, Name: costs[kind].name}
}
