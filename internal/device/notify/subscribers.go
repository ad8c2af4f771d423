package notify

import "sync"

// Subscribers are those who are told of changes. The zero value has none. Its methods are safe for
// concurrent use.
type Subscribers struct {
	mu  sync.Mutex
	all map[*subscriber]struct{}
}

// subscriber is one Subscribe.
type subscriber struct {
	changes chan news
	done    chan struct{}
}

// news is a change to be reported or, if told is set, a mark that is closed when everything before it has
// been reported.
type news struct {
	Change
	told chan struct{}
}

// most is how many changes are queued for a slow subscriber; beyond it the oldest is dropped.
const most = 64

// Subscribe calls fn after every change until cancel is called. fn runs on a goroutine of its own, in
// order; cancel returns after its last call, and must not be called by fn.
func (l *Subscribers) Subscribe(fn func(Change)) (cancel func()) {
	s := &subscriber{changes: make(chan news, most), done: make(chan struct{})}
	l.mu.Lock()
	if l.all == nil {
		l.all = map[*subscriber]struct{}{}
	}
	l.all[s] = struct{}{}
	l.mu.Unlock()
	go func() {
		defer close(s.done)
		for c := range s.changes {
			if c.told != nil {
				close(c.told)
				continue
			}
			fn(c.Change)
		}
	}()
	return func() {
		l.mu.Lock()
		if _, ok := l.all[s]; ok {
			delete(l.all, s)
			close(s.changes)
		}
		l.mu.Unlock()
		<-s.done
	}
}

// Report tells the subscribers of a change. It does not wait for them.
func (l *Subscribers) Report(c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.all {
		s.tell(news{Change: c})
	}
}

// tell queues news, replacing the oldest if the queue is full.
func (s *subscriber) tell(n news) {
	for {
		select {
		case s.changes <- n:
			return
		default:
		}
		select {
		case old := <-s.changes:
			if old.told != nil {
				close(old.told)
			}
		default:
		}
	}
}

// Settle returns when subscribers have been told of every change so far. A subscriber must not call it.
func (l *Subscribers) Settle() {
	var marks []chan struct{}
	l.mu.Lock()
	for s := range l.all {
		told := make(chan struct{})
		s.tell(news{told: told})
		marks = append(marks, told)
	}
	l.mu.Unlock()
	for _, told := range marks {
		<-told
	}
}
