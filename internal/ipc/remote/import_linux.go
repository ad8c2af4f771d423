package remote

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// importObject gives the program an object of another one of the same agent's: the relay has both attached to the driver, and so may ask
// for the token of the one for the other. Which program of its machine may, the agent has found out.
func (p *relayed) importObject(ctx context.Context, id uint64, q importing) {
	p.r.mu.Lock()
	from := p.r.programs[q.From]
	p.r.mu.Unlock()
	if from == nil || !from.ready.Load() {
		p.answer(id, nil, command.Errorf(command.NotFound, "program %d of the agent's is not attached", q.From))
		return
	}
	token, err := from.token(ctx)
	if err != nil && ctx.Err() == nil {
		err = command.Errorf(command.NotFound, "program %d of the agent's has ended: %v", q.From, err)
	}
	if err != nil {
		p.answer(id, nil, err)
		return
	}
	p.hand(ctx, id, proto.OpImport, proto.Encode(proto.ImportArgs{Token: token, Kind: q.Kind, Handle: q.Handle, PD: q.PD}))
}

// token returns that by which others name the program to the driver.
func (p *relayed) token(ctx context.Context) (token [16]byte, err error) {
	type told struct {
		body []byte
		err  error
	}
	reply := make(chan told, 1)
	err = p.client.Relay(ctx, proto.OpExport, nil, func(body []byte, err error) { reply <- told{append([]byte(nil), body...), err} })
	if err != nil {
		return token, err
	}
	select {
	case r := <-reply:
		if r.err != nil {
			return token, r.err
		}
		e, err := proto.Decode[proto.Exported](r.body)
		return e.Token, err
	case <-ctx.Done():
		return token, command.Ended(ctx)
	}
}
