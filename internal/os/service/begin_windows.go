package service

import (
	"context"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// failed is the code that a service which has failed leaves to the manager; the event log has the text.
const failed = 1

// patience is how many milliseconds the manager may wait for the next word of a service that starts or stops.
const patience = 30000

// Begin returns this process as a service, and a context that ends when it is to stop; nil if it is not one.
func Begin(ctx context.Context) (*Service, context.Context, error) {
	is, err := svc.IsWindowsService()
	if err != nil || !is {
		return nil, ctx, err
	}
	s, ctx := Start(ctx, func(serve Serve) error { return svc.Run(Name, handler(serve)) })
	return s, ctx, nil
}

// handler is what golang.org/x/sys/windows/svc calls.
type handler Serve

var windowsStates = map[State]svc.Status{
	Starting: {State: svc.StartPending, WaitHint: patience},
	Running:  {State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown},
	Stopping: {State: svc.StopPending, WaitHint: patience},
}

// Execute implements svc.Handler.
func (h handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	commands, end := make(chan Command), make(chan struct{})
	defer close(end)
	go func() {
		for {
			var r svc.ChangeRequest
			select {
			case r = <-requests:
			case <-end:
				return
			}
			c := Interrogate
			if r.Cmd == svc.Stop || r.Cmd == svc.Shutdown {
				c = Stop
			}
			select {
			case commands <- c:
			case <-end:
				return
			}
		}
	}()
	if err := h(commands, func(s State) { status <- windowsStates[s] }); err != nil {
		report(err)
		return true, failed
	}
	return false, 0
}

// report writes why the service has failed into the event log: a service has no standard error.
func report(failure error) {
	l, err := eventlog.Open(Name)
	if err != nil {
		return
	}
	defer l.Close()
	_ = l.Error(1, Name+" has stopped: "+failure.Error())
}
