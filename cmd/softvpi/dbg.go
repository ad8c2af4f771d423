package main

import "github.com/softvpi/softvpi/internal/api"

type dbgCmd struct {
	Fault faultCmd `cmd:"" help:"Make something go wrong in an adapter, to see that self-healing finds it. The configuration must have \"fault_injection\": true."`
}

type faultCmd struct {
	adapterRef `embed:""`
	Fault      string `arg:"" enum:"wire,completions,host,receive,send,descriptor,events,command,loop,panic,turn,crash,request" help:"What: ${enum}."`
}

// Help says what the faults are.
func (faultCmd) Help() string {
	return `wire         the link takes no packets (sensor 0x08)
completions  requests complete, and the completions stay in the engine (0x10)
host         the host of the Ethernet function takes no frames (0x40)
receive      the link fails to receive (0x10000)
send         the link fails to send (0x20000)
descriptor   both, as of a link whose descriptor has died
events       events of completion queues are not raised (0x100000)
command      commands of programs do not return (0x200000)
loop         the port has no turns (0x400000)
panic        an engine panics (0x800000)
turn         a turn of the loop never ends: nobody is answered any more, and softvpi up ends itself after a minute
crash        the driver panics outside of all turns, which ends softvpi up at once
request      this very request ends in a panic: it is refused, and the driver goes on
A fault lasts until the adapter is restarted, by self-healing or by hand. In place of the adapter, the name of a virtual
function makes the commands of its programs alone not return, until it is reset: command is the one fault that it has.`
}

func (c faultCmd) Run(s *session) error {
	return c.admin().InjectFault(s.ctx, api.FaultRequest{Adapter: c.Name, Fault: c.Fault})
}
