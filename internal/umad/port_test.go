package umad

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/wire/mad"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// far is a transport whose other end is a function; what it returns is received.
type far struct {
	answer func(*Datagram) []Datagram
	in     chan Datagram
	end    chan struct{}
	once   sync.Once
	mu     sync.Mutex
	sent   []Datagram
	fail   error
}

func newFar(answer func(*Datagram) []Datagram) *far {
	return &far{answer: answer, in: make(chan Datagram, 1000), end: make(chan struct{})}
}

func (f *far) Send(d *Datagram) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.sent = append(f.sent, *d)
	for _, a := range f.answer(d) {
		f.in <- a
	}
	return nil
}

func (f *far) Receive(d *Datagram) error {
	select {
	case *d = <-f.in:
		return nil
	case <-f.end:
		return io.EOF
	}
}

func (f *far) Close() error {
	f.once.Do(func() { close(f.end) })
	return nil
}

func (f *far) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sent)
}

func nodeInfoRequest() *[mad.Len]byte {
	s := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	return (*[mad.Len]byte)(s.Append(nil))
}

// reply returns d with the method of an answer.
func reply(d *Datagram) Datagram {
	a := *d
	a.MAD[3] |= responseBit
	return a
}

func TestCallFindsItsAnswer(t *testing.T) {
	f := newFar(func(d *Datagram) []Datagram {
		late, other, right := reply(d), reply(d), reply(d)
		binary.BigEndian.PutUint64(late.MAD[transactionID:], 1) // belongs to no request
		other.MAD[17] = 0x10                                    // another attribute
		right.MAD[64] = 77
		binary.BigEndian.PutUint32(right.MAD[transactionID:], 0xabcd) // what a transport keeps there
		return []Datagram{late, other, right, right}
	})
	p := newPort(f, Device{Name: "a"}, 1000)
	defer p.Close()
	for range 3 {
		a, err := p.Call(context.Background(), Address{LID: 4}, nodeInfoRequest(), DefaultTiming)
		if err != nil || a.MAD[64] != 77 {
			t.Fatalf("answer %v, %v", a, err)
		}
	}
	if p.Device().Name != "a" || f.sent[0].Remote.LID != 4 {
		t.Errorf("sent to %v", f.sent[0].Remote)
	}
}

// TestCallAsksAgain: a request is sent again at each timeout until it is answered, in virtual time.
func TestCallAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f := newFar(func(d *Datagram) []Datagram {
			if n++; n == 3 {
				return []Datagram{reply(d)}
			}
			return nil
		})
		p := newPort(f, Device{}, 1)
		defer p.Close()
		began := time.Now()
		if _, err := p.Call(context.Background(), Address{}, nodeInfoRequest(), Timing{time.Second, 30}); err != nil || f.count() != 3 {
			t.Errorf("%v after %d sends, want the third answered", err, f.count())
		}
		if took := time.Since(began); took < 2*time.Second || took >= 3*time.Second {
			t.Errorf("answered after %v, want two timeouts of 1 s", took)
		}
	})
}

func TestCallEnds(t *testing.T) {
	silent := func(*Datagram) []Datagram { return nil }
	back := func(d *Datagram) []Datagram { a := *d; a.Failed = true; return []Datagram{a} }
	t.Run("silence", func(t *testing.T) {
		f := newFar(silent)
		p := newPort(f, Device{}, 1)
		defer p.Close()
		_, err := p.Call(context.Background(), Address{}, nodeInfoRequest(), Timing{2 * time.Millisecond, 3})
		if !errors.Is(err, ErrTimeout) || f.count() != 3 {
			t.Errorf("%v after %d sends, want ErrTimeout after 3", err, f.count())
		}
	})
	t.Run("undelivered", func(t *testing.T) {
		f := newFar(back)
		p := newPort(f, Device{}, 1)
		defer p.Close()
		if _, err := p.Call(context.Background(), Address{}, nodeInfoRequest(), Timing{time.Hour, 3}); !errors.Is(err, ErrTimeout) ||
			f.count() != 3 {
			t.Errorf("%v after %d sends, want ErrTimeout after 3", err, f.count())
		}
	})
	t.Run("context", func(t *testing.T) {
		p := newPort(newFar(silent), Device{}, 1)
		defer p.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := p.Call(ctx, Address{}, nodeInfoRequest(), DefaultTiming); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's end", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		p := newPort(newFar(silent), Device{}, 1)
		ended := make(chan error, 1)
		p.Start(Address{}, nodeInfoRequest(), Timing{time.Hour, 1}, func(_ *Datagram, err error) { ended <- err })
		p.Close()
		p.Close()
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		if _, err := p.Call(context.Background(), Address{}, nodeInfoRequest(), DefaultTiming); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
	t.Run("transport fails", func(t *testing.T) {
		f := newFar(silent)
		f.fail = io.ErrShortWrite
		p := newPort(f, Device{}, 1)
		defer p.Close()
		if _, err := p.Call(context.Background(), Address{}, nodeInfoRequest(), DefaultTiming); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%v, want what the transport says", err)
		}
	})
	t.Run("transport ends", func(t *testing.T) {
		f := newFar(func(*Datagram) []Datagram { return nil })
		p := newPort(f, Device{}, 1)
		defer p.Close()
		time.AfterFunc(time.Millisecond, func() { f.Close() })
		if _, err := p.Call(context.Background(), Address{}, nodeInfoRequest(), Timing{time.Hour, 1}); !errors.Is(err, io.EOF) {
			t.Errorf("%v, want what the transport says", err)
		}
	})
}

// TestManyOutstanding: with a thousand requests outstanding each gets its own answer.
func TestManyOutstanding(t *testing.T) {
	f := newFar(func(d *Datagram) []Datagram { return []Datagram{reply(d)} })
	p := newPort(f, Device{}, 7)
	defer p.Close()
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Add(1)
		r := nodeInfoRequest()
		binary.BigEndian.PutUint32(r[100:], uint32(i))
		p.Start(Address{}, r, DefaultTiming, func(a *Datagram, err error) {
			if err != nil || binary.BigEndian.Uint32(a.MAD[100:]) != uint32(i) {
				t.Errorf("request %d: %v", i, err)
			}
			wg.Done()
		})
	}
	wg.Wait()
}

func TestServe(t *testing.T) {
	f := newFar(func(*Datagram) []Datagram { return nil })
	p := newPort(f, Device{}, 1)
	defer p.Close()
	p.Serve(mad.ClassSubnetLID, func(d *Datagram) *[mad.Len]byte {
		if d.MAD[3] == mad.MethodSet {
			return nil
		}
		a := reply(d)
		return &a.MAD
	})
	request := Datagram{Remote: Address{LID: 9, QP: 1, SL: 3, PKeyIndex: 2}, LocalQP: 1, MAD: *nodeInfoRequest()}
	foreign, set := request, request
	foreign.MAD[1] = 0x32
	set.MAD[3] = mad.MethodSet
	for _, d := range []Datagram{foreign, set, request} {
		f.in <- d
	}
	await.Eventually(t, "an answer is sent", func() bool { return f.count() > 0 })
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sent) != 1 || f.sent[0].Remote != (Address{9, 1, 3, 2}) || f.sent[0].MAD[3] != mad.MethodGetResp {
		t.Errorf("sent %d answers, the first %+v", len(f.sent), f.sent[0].Remote)
	}
}
