package nd

import (
	"context"

	"github.com/softvpi/softvpi/verbs"
)

// subscription receives the asynchronous events of the session, one at a time.
type subscription struct {
	notify func(verbs.Event)
	ended  func() // the session ended; may be nil
}

// subscribe starts passing events to s. The watcher runs while there are subscriptions.
func (p *Provider) subscribe(s *subscription) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return refuse(StatusCanceled, "Provider", "the provider is closed")
	}
	p.subs[s] = struct{}{}
	if p.watching {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.watching, p.cancel, p.done = true, cancel, make(chan struct{})
	go p.watch(ctx, p.host.Watch(), p.done)
	return nil
}

func (p *Provider) unsubscribe(s *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, s)
}

func (p *Provider) subscriptions() []*subscription {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*subscription, 0, len(p.subs))
	for s := range p.subs {
		list = append(list, s)
	}
	return list
}

func (p *Provider) watch(ctx context.Context, w *verbs.Watcher, done chan struct{}) {
	defer close(done)
	defer w.Close()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			break
		}
		for _, s := range p.subscriptions() {
			s.notify(e)
		}
	}
	for _, s := range p.subscriptions() {
		if s.ended != nil {
			s.ended()
		}
	}
}
