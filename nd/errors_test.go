package nd_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

func TestStatusNames(t *testing.T) {
	for s, name := range map[nd.Status]string{
		nd.StatusSuccess: "ND_SUCCESS", nd.StatusConnectionRefused: "ND_CONNECTION_REFUSED",
		nd.StatusInvalidParameter10: "ND_INVALID_PARAMETER_10", nd.StatusDeviceRemoved: "ND_DEVICE_REMOVED",
		0xdeadbeef: "ND_STATUS_DEADBEEF",
	} {
		if s.Name() != name {
			t.Errorf("Name of %#x is %s, want %s", uint32(s), s.Name(), name)
		}
	}
	err := nd.StatusIOTimeout.Err()
	if !errors.Is(err, nd.ErrIOTimeout) || errors.Is(err, nd.ErrTimeout) || nd.StatusOf(err) != nd.StatusIOTimeout {
		t.Errorf("%v is not ErrIOTimeout alone", err)
	}
	if nd.StatusSuccess.Err() != nil || nd.StatusOf(nil) != nd.StatusSuccess || nd.StatusOf(errors.New("x")) != nd.StatusUnsuccessful {
		t.Error("success and foreign errors have the wrong status")
	}
}

// tryConnect returns the error of an attempt to connect to remote.
func tryConnect(t *testing.T, ctx context.Context, p *place, remote netip.AddrPort) error {
	e := newEnd(t, p.client, endConfig{})
	begin := time.Now()
	err := e.connector.Connect(ctx, e.qp, remote, full)
	if err == nil {
		t.Fatalf("connect to %v succeeds", remote)
	}
	if !strings.Contains(err.Error(), remote.String()) {
		t.Errorf("error %q does not name %v", err, remote)
	}
	t.Logf("after %v: %v", time.Since(begin).Round(time.Millisecond), err)
	// The queue pair is unchanged, and the connector may be used again.
	again := e.connector.Connect(ctx, e.qp, remote, full)
	if nd.StatusOf(again) != nd.StatusOf(err) {
		t.Errorf("again: %v, first: %v", again, err)
	}
	return err
}

// lateContext has a deadline, but ends later, as on a machine that has no time for timers.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

func TestConnectErrorsNameTheAddress(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		t.Run("nobody listens on the port", func(t *testing.T) { // REJ 8
			err := tryConnect(t, ctx, p, netip.AddrPortFrom(p.Addrs[0], 9))
			wantErr(t, err, nd.ErrConnectionRefused)
		})
		t.Run("no adapter at the address", func(t *testing.T) { // ICMP port unreachable
			err := tryConnect(t, ctx, p, netip.AddrPortFrom(testbed.Addrs()[0], 9))
			wantErr(t, err, nd.ErrConnectionRefused)
		})
		t.Run("no answer", func(t *testing.T) {
			mute := testbed.Addrs()[0]
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(mute, 4791)))
			ok(t, err)
			defer c.Close()
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			e := newEnd(t, p.client, endConfig{})
			err = e.connector.Connect(short, e.qp, netip.AddrPortFrom(mute, 9), full)
			wantErr(t, err, nd.ErrIOTimeout)
			wantErr(t, err, context.DeadlineExceeded)
			if !strings.Contains(err.Error(), mute.String()) {
				t.Errorf("error %q does not name %v", err, mute)
			}
			late := lateContext{ctx, time.Now().Add(100 * time.Millisecond)}
			err = e.connector.Connect(late, e.qp, netip.AddrPortFrom(mute, 9), full)
			wantErr(t, err, nd.ErrIOTimeout)
			wantErr(t, err, context.DeadlineExceeded)
		})
		t.Run("no route", func(t *testing.T) {
			err := tryConnect(t, ctx, p, netip.MustParseAddrPort("[2001:db8::1]:9"))
			wantErr(t, err, nd.ErrNetworkUnreachable)
		})
		t.Run("rejected by the program", func(t *testing.T) {
			l, addr := listen(t, p.server)
			rejected := later(func() error {
				c, err := p.server.CreateConnector()
				if err != nil {
					return err
				}
				defer c.Close()
				if err := l.GetConnectionRequest(ctx, c); err != nil {
					return err
				}
				return c.Reject([]byte("no"))
			})
			e := newEnd(t, p.client, endConfig{})
			err := e.connector.Connect(ctx, e.qp, addr, full)
			wantErr(t, err, nd.ErrConnectionRefused)
			ok(t, rejected())
			var r *verbs.RejectedError
			if !errors.As(err, &r) || r.Reason != verbs.RejectConsumer || string(r.Private[:2]) != "no" {
				t.Errorf("cause of %v is not the program's reject with its private data", err)
			}
			// The same queue pair and connector succeed at the next attempt.
			server := newEnd(t, p.server, endConfig{})
			accepted := server.accept(ctx, l, full)
			ok(t, e.connector.Connect(ctx, e.qp, addr, full))
			ok(t, e.connector.CompleteConnect(ctx))
			ok(t, accepted())
		})
	})
}

// Cancelling the context cancels the overlapped call: ND_CANCELED (WinOF manual, bug list).
func TestCancel(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		l, _ := listen(t, p.server)
		idle := must(p.server.CreateConnector())(t)
		srq := must(p.server.CreateSharedReceiveQueue(8, 1, 0))(t)
		defer srq.Close()
		calls := map[string]struct {
			call   func(context.Context) error
			cancel func() error
		}{
			"CompletionQueue.Notify": {func(ctx context.Context) error { return server.cq.Notify(ctx, nd.NotifyAny) },
				server.cq.CancelOverlappedRequests},
			"Listener.GetConnectionRequest": {func(ctx context.Context) error { return l.GetConnectionRequest(ctx, idle) },
				l.CancelOverlappedRequests},
			"Connector.NotifyDisconnect": {server.connector.NotifyDisconnect, server.connector.CancelOverlappedRequests},
			"SharedReceiveQueue.Notify":  {srq.Notify, srq.CancelOverlappedRequests},
		}
		for name, c := range calls {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				waiting := later(func() error { return c.call(ctx) })
				cancel()
				err := waiting()
				wantErr(t, err, nd.ErrCanceled)
				wantErr(t, err, context.Canceled)

				done := make(chan error, 1)
				go func() { done <- c.call(context.Background()) }()
				for { // until the call waits
					ok(t, c.cancel())
					select {
					case err := <-done:
						wantErr(t, err, nd.ErrCanceled)
						return
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
		ok(t, idle.Close())

		mute := testbed.Addrs()[0]
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(mute, 4791)))
		ok(t, err)
		defer c.Close()
		e := newEnd(t, p.client, endConfig{})
		ctx, cancel := context.WithCancel(context.Background())
		connecting := later(func() error {
			return e.connector.Connect(ctx, e.qp, netip.AddrPortFrom(mute, 9), full)
		})
		_, _, err = c.ReadFromUDP(make([]byte, 512)) // the request is on its way
		ok(t, err)
		cancel()
		wantErr(t, connecting(), nd.ErrCanceled)
	})
}

// Calls in the wrong state or with the wrong arguments are refused, and nothing
// panics.
func TestInvalidUse(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		e := newEnd(t, p.server, endConfig{inline: 16})
		other := newEnd(t, p.client, endConfig{})
		mw := must(p.server.CreateMemoryWindow())(t)
		defer mw.Close()
		sge := []nd.SGE{e.mr.SGE(0, 8)}
		for _, c := range []struct {
			name string
			err  error
			want error
		}{
			{"send unconnected", e.qp.Send(1, sge, 0), nd.ErrConnectionInvalid},
			{"write unconnected", e.qp.Write(1, sge, 0, 0, 0), nd.ErrConnectionInvalid},
			{"read unconnected", e.qp.Read(1, sge, 0, 0, 0), nd.ErrConnectionInvalid},
			{"bind unconnected", e.qp.Bind(1, e.mr, mw, e.mr.Buffer(), nd.OpFlagAllowRead), nd.ErrConnectionInvalid},
			{"invalidate unconnected", e.qp.Invalidate(1, mw, 0), nd.ErrConnectionInvalid},
			{"send flags", e.qp.Send(1, sge, nd.OpFlagAllowRead), nd.ErrInvalidParameter4},
			{"write flags", e.qp.Write(1, sge, 0, 0, nd.OpFlagSendAndSolicitEvent), nd.ErrInvalidParameter6},
			{"read flags", e.qp.Read(1, sge, 0, 0, nd.OpFlagInline), nd.ErrInvalidParameter6},
			{"bind nothing", e.qp.Bind(1, nil, nil, nil, 0), nd.ErrInvalidParameter2},
			{"bind no window", e.qp.Bind(1, e.mr, nil, e.mr.Buffer(), nd.OpFlagAllowRead), nd.ErrInvalidParameter3},
			{"bind no access", e.qp.Bind(1, e.mr, mw, e.mr.Buffer(), 0), nd.ErrInvalidParameter6},
			{"bind elsewhere", e.qp.Bind(1, e.mr, mw, make([]byte, 8), nd.OpFlagAllowRead), nd.ErrAccessViolation},
			{"bind a region of another adapter", e.qp.Bind(1, other.mr, mw, other.mr.Buffer(), nd.OpFlagAllowRead),
				nd.ErrInvalidParameter2},
			{"invalidate nothing", e.qp.Invalidate(1, nil, 0), nd.ErrInvalidParameter2},
			{"too many receive entries", e.qp.Receive(1, make([]nd.SGE, 5)), nd.ErrDataOverrun},
			{"notify type", e.cq.Notify(ctx, 9), nd.ErrInvalidParameter},
			{"connect without qp", e.connector.Connect(ctx, nil, netip.MustParseAddrPort("127.9.9.9:9"), full), nd.ErrInvalidParameter},
			{"connect with another adapter's qp", e.connector.Connect(ctx, other.qp, netip.MustParseAddrPort("127.9.9.9:9"), full),
				nd.ErrInvalidParameter},
			{"accept nothing", e.connector.Accept(ctx, e.qp, full), nd.ErrConnectionInvalid},
			{"complete nothing", e.connector.CompleteConnect(ctx), nd.ErrConnectionInvalid},
			{"reject nothing", e.connector.Reject(nil), nd.ErrConnectionInvalid},
			{"disconnect nothing", e.connector.Disconnect(ctx), nd.ErrConnectionInvalid},
			{"watch nothing", e.connector.NotifyDisconnect(ctx), nd.ErrConnectionInvalid},
			{"moderate nothing", p.server.SetCQInterruptModeration(nil, 1, 0), nd.ErrInvalidParameter},
			{"moderate below 0", p.server.SetCQInterruptModeration(e.cq, -1, 0), nd.ErrInvalidParameter},
			{"resize to 0", e.cq.Resize(0), nd.ErrInvalidParameter},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: error is %v, want %v", c.name, c.err, c.want)
			}
		}
		if _, _, err := e.connector.GetReadLimits(); !errors.Is(err, nd.ErrConnectionInvalid) {
			t.Errorf("GetReadLimits: %v", err)
		}
		if _, err := p.server.CreateCompletionQueue(0); !errors.Is(err, nd.ErrInvalidParameter3) {
			t.Errorf("CreateCompletionQueue(0): %v", err)
		}
		for i, args := range [][3]int{{0, 1, 0}, {8, 99, 0}, {8, 1, 9}} {
			want := []error{nd.ErrInvalidParameter3, nd.ErrInvalidParameter4, nd.ErrInvalidParameter5}[i]
			if _, err := p.server.CreateSharedReceiveQueue(args[0], args[1], args[2]); !errors.Is(err, want) {
				t.Errorf("CreateSharedReceiveQueue%v: %v, want %v", args, err, want)
			}
		}
		provider := nd.NewProvider(p.Server)
		if _, err := provider.OpenAdapter(1); !errors.Is(err, nd.ErrInvalidParameter) {
			t.Errorf("OpenAdapter(1): %v", err)
		}
		for _, a := range []netip.Addr{{}, netip.IPv4Unspecified(), netip.MustParseAddr("192.0.2.1")} {
			if _, err := provider.ResolveAddress(a); !errors.Is(err, nd.ErrInvalidAddress) {
				t.Errorf("ResolveAddress(%v): %v", a, err)
			}
		}
		for range 16 {
			ok(t, e.qp.Receive(1, nil))
		}
		wantErr(t, e.qp.Receive(1, nil), nd.ErrNoMoreEntries)
		wantErr(t, p.server.Close(), nd.ErrDeviceBusy)

		connect(t, e, other)
		wantErr(t, e.qp.Send(1, []nd.SGE{{Buffer: make([]byte, 17)}}, nd.OpFlagInline), nd.ErrBufferOverflow)
		wantErr(t, e.qp.Send(1, make([]nd.SGE, 5), 0), nd.ErrDataOverrun)
		ok(t, other.qp.Receive(1, []nd.SGE{other.mr.SGE(0, 16)}))
		five := []byte("abcde")
		ok(t, e.qp.Send(1, []nd.SGE{{Buffer: five[:1]}, {Buffer: five[1:2]}, {Buffer: five[2:3]}, {Buffer: five[3:4]}, {Buffer: five[4:]}},
			nd.OpFlagInline))
		other.want(t, nd.RequestReceive, nd.StatusSuccess)
		if got := string(other.mr.Buffer()[:5]); got != "abcde" {
			t.Errorf("inline entries beyond the limit of entries arrive as %q", got)
		}
	})
}
