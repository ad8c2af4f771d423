package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
)

// SoakVariable makes this test binary a program of TestTracksSoak, with four values between commas: its role, the
// driver's socket, an address with a listener, and a seed.
const SoakVariable = "SOFTVPI_TEST_SOAK"

// Roles holds the roles of such programs, as often as they should be chosen.
var Roles = []string{"worker", "worker", "worker", "quitter", "glutton", "vandal", "vandal"}

// Secret is the beginning of segments that other programs must not be able to read.
var Secret = []byte("whoever reads this in another program has broken in")

// fault is the error of such a program when something happened that must never happen.
func fault(format string, args ...any) error { return fmt.Errorf("FAULT: "+format, args...) }

func soaked(arg string) error {
	f := strings.Split(arg, ",")
	var seed uint64
	if _, err := fmt.Sscan(f[3], &seed); err != nil {
		return err
	}
	p := &soaker{socket: f[1], remote: netip.MustParseAddrPort(f[2]), seed: seed, r: rand.New(rand.NewPCG(seed, 0))}
	return map[string]func() error{"worker": p.work, "quitter": p.quit, "glutton": p.gorge, "vandal": p.vandalize}[f[0]]()
}

type soaker struct {
	socket string
	remote netip.AddrPort
	seed   uint64
	r      *rand.Rand
}

func (p *soaker) dial() (*Client, error) {
	c, err := Dial(context.Background(), p.socket, Options{Name: "soak", NoDirect: p.r.IntN(2) == 0})
	if err == nil && c.tracks.mem == nil {
		return nil, fault("no tracks")
	}
	return c, err
}

// work sends commands of all kinds from several goroutines until it is killed.
func (p *soaker) work() error {
	c, err := p.dial()
	if err != nil {
		return err
	}
	go func() {
		out := make([]command.Event, 8)
		for {
			if _, err := c.Events(context.Background(), out); err != nil {
				return
			}
		}
	}()
	fmt.Println("ready")
	failed := make(chan error)
	for g := range 8 {
		w := &commander{c: c, r: rand.New(rand.NewPCG(p.seed, uint64(g))), remote: p.remote}
		go func() {
			for {
				if err := w.next(); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// quit leaves in the middle of its commands, with a goodbye or without, again and again.
func (p *soaker) quit() error {
	fmt.Println("ready")
	for {
		c, err := p.dial()
		if err != nil {
			return err
		}
		for range p.r.IntN(40) {
			_ = c.begin(context.Background(), proto.OpAllocPD, proto.Encode(proto.AdapterArgs{}), func(reply) {})
			_ = c.BeginConnect(context.Background(), command.CMConnect{}, func(command.Handle, error) {})
		}
		if p.r.IntN(2) == 0 {
			_ = c.conn.Close()
		}
		if err := c.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
			return fault("close: %v", err)
		}
	}
}

// gorge fills the tracks: it sends requests and takes no answers.
func (p *soaker) gorge() error {
	c, err := p.dial()
	if err != nil {
		return err
	}
	c.tracks.owner.Own()
	fmt.Println("ready")
	for id := uint64(1); ; id++ {
		if err := c.out.Send(proto.OpAdapters, 0, id, nil); err != nil {
			time.Sleep(time.Second) // disconnected
		}
	}
}

// vandalize writes random bytes into everything it shares with the driver, and attaches again when it was
// disconnected.
func (p *soaker) vandalize() error {
	fmt.Println("ready")
	for {
		c, err := p.dial()
		if err != nil {
			return err
		}
		for c.calls.failure() == nil {
			if err := p.rubbish(c); err != nil {
				return err
			}
		}
		_ = c.Close()
	}
}

func (p *soaker) rubbish(c *Client) error {
	r, mem := p.r, c.tracks.mem
	word := func(at int) { binary.NativeEndian.PutUint32(mem[at:], r.Uint32()>>r.IntN(32)) }
	half := r.IntN(2) * stream.TrackSize()
	switch r.IntN(10) {
	case 0:
		word(half + []int{stream.TrackProducer, stream.TrackConsumer, stream.TrackAsleep, stream.TrackPassed}[r.IntN(4)])
	case 1, 2, 3:
		word(half + r.IntN(stream.TrackSize()/4)*4)
	case 4: // a frame that may be valid, of a kind that may exist
		body := make([]byte, r.IntN(400))
		for i := range body {
			if r.IntN(4) == 0 {
				body[i] = byte(r.Uint32())
			}
		}
		_, _ = stream.OpenTrack(mem).Put(proto.Opcode(r.IntN(80)), uint16(r.IntN(2)*r.IntN(4)), uint64(r.IntN(100)), body)
	case 5: // valid bodies with unknown handles
		id, op := uint64(
			r.Uint32(),
		), []proto.Opcode{proto.OpCreateQP, proto.OpCMConnect, proto.OpCMAccept, proto.OpDestroy, proto.OpModifyQP,
			proto.OpCMEstablish}[r.IntN(6)]
		body := make(
			[]byte,
			map[proto.Opcode]int{proto.OpCreateQP: 56, proto.OpCMConnect: 296, proto.OpCMAccept: 248, proto.OpDestroy: 8,
				proto.OpModifyQP: 80, proto.OpCMEstablish: 4}[op],
		)
		for i := 0; i+4 <= len(body); i += 4 {
			binary.LittleEndian.PutUint32(body[i:], r.Uint32()>>r.IntN(32))
		}
		_ = c.out.Send(op, 0, id, body)
	case 6:
		a := c.Arena(0)
		binary.NativeEndian.PutUint64(a[r.IntN(len(a)/8)*8:], r.Uint64()>>r.IntN(64))
		c.Doorbell(command.Handle(r.Uint32()))
	case 7:
		_ = c.out.Stream(proto.OpWakeUp, 0, 0, nil)
	case 8:
		return p.trespass(c)
	default:
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, _ = c.AllocPD(ctx, 0)
	}
	return nil
}

// trespass tries to map other programs' segments.
func (p *soaker) trespass(c *Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	r, err := c.call(
		ctx,
		proto.OpMapSegment,
		proto.Encode(proto.MapSegmentArgs{Program: uint32(p.r.IntN(64)), Segment: uint32(p.r.IntN(8))}),
	)
	for _, fd := range r.fds {
		mem, mapErr := shared.Map(fd, 4096)
		if mapErr == nil && bytes.Contains(mem, Secret) {
			return fault("another program's segment was mapped: %v", err)
		}
	}
	return nil
}

// commander sends one command after another and remembers the objects it has made.
type commander struct {
	c      *Client
	r      *rand.Rand
	remote netip.AddrPort
	pd, cq command.Handle
	qps    []command.QueuePair
	ids    []command.Handle
}

// next sends a command. Its error is one that must never happen; expected ones are dropped.
func (w *commander) next() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	brief := w.r.IntN(6) == 0
	if brief {
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(w.r.IntN(500))*time.Microsecond)
	}
	defer cancel()
	err := w.command(ctx)
	var known *command.Error
	switch {
	case err == nil:
	case !errors.As(err, &known):
		return err
	case known.Code == command.Removed, known.Code == command.Internal:
		return fault("seed of a worker that behaves: %v", err)
	case known.Code == command.TimedOut && !brief:
		return fault("no answer in a minute: %v", err)
	}
	return nil
}

func (w *commander) command(ctx context.Context) (err error) {
	c, r := w.c, w.r
	if w.pd == 0 {
		w.pd, err = c.AllocPD(ctx, uint32(r.IntN(2)))
		return err
	}
	if w.cq == 0 {
		q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 64})
		w.cq = q.Handle
		return err
	}
	switch r.IntN(14) {
	case 0, 1:
		return w.createQP(ctx)
	case 2:
		return w.queryQP(ctx)
	case 3:
		if len(w.qps) == 0 {
			return nil
		}
		return c.ModifyQP(
			ctx,
			command.ModifyQP{QP: w.qps[0].Handle, Mask: command.MaskState | command.MaskAccess | command.MaskPKey, State: command.Init},
		)
	case 4:
		return w.drop(ctx)
	case 5:
		_, err = c.Adapters(ctx)
	case 6:
		_, err = c.Counters(ctx, uint32(r.IntN(3)))
	case 7:
		err = w.segment(ctx)
	case 8:
		h, err := c.CMCreate(ctx, command.CMCreate{Space: command.TCP, Context: 1})
		if err == nil {
			w.ids = append(w.ids, h)
		}
		return err
	case 9, 10:
		return w.connect(ctx)
	case 11:
		_, err = c.CMQuery(ctx, command.Handle(r.Uint32()))
	case 12:
		pd, err := c.AllocPD(ctx, 0)
		if err == nil {
			err = c.Destroy(ctx, command.KindPD, pd)
		}
		return err
	default:
		if len(w.ids) == 0 {
			return nil
		}
		_, err = c.CMBind(ctx, w.ids[0], command.Endpoint{Addr: command.AddrFrom(w.remote.Addr())})
	}
	return err
}

func (w *commander) createQP(ctx context.Context) error {
	q, err := w.c.CreateQP(ctx, command.CreateQP{PD: w.pd, Type: command.RC, SendCQ: w.cq, RecvCQ: w.cq,
		SendDepth: 8, RecvDepth: 8, SendSGE: 1, RecvSGE: 1})
	if err == nil {
		w.qps = append(w.qps, q)
	}
	return err
}

// queryQP checks that the answer to a query is about the QP that was asked for.
func (w *commander) queryQP(ctx context.Context) error {
	if len(w.qps) == 0 {
		return nil
	}
	q := w.qps[w.r.IntN(len(w.qps))]
	info, err := w.c.QueryQP(ctx, q.Handle)
	if err == nil && info.Number != q.Number {
		return fault("asked for QP %#x, the answer is about %#x", q.Number, info.Number)
	}
	return err
}

// drop destroys an object of a kind of which there are many.
func (w *commander) drop(ctx context.Context) error {
	if len(w.ids) > 8 {
		h := w.ids[0]
		w.ids = w.ids[1:]
		return w.c.Destroy(ctx, command.KindCM, h)
	}
	if len(w.qps) > 8 {
		h := w.qps[0].Handle
		w.qps = w.qps[1:]
		return w.c.Destroy(ctx, command.KindQP, h)
	}
	return nil
}

func (w *commander) segment(ctx context.Context) error {
	id, mem, err := w.c.AllocSegment(ctx, 4096)
	if err != nil {
		return err
	}
	copy(mem, Secret)
	m, err := w.c.RegisterMemory(ctx, command.RegisterMemory{PD: w.pd, Access: 1, Base: 4096, Length: 4096, Segment: id})
	if err == nil {
		if w.r.IntN(4) == 0 {
			return nil // leaves one for others to take
		}
		err = w.c.Destroy(ctx, command.KindMemory, m.Handle)
	}
	return errors.Join(err, w.c.FreeSegment(id))
}

// connect asks for a connection, in one of the two ways, and does not wait for it.
func (w *commander) connect(ctx context.Context) error {
	q := command.CMConnect{Remote: command.Endpoint{Addr: command.AddrFrom(w.remote.Addr()), Port: w.remote.Port()},
		Space: command.TCP, Adapter: command.AnyAdapter, Timeout: 50}
	if len(w.qps) > 0 {
		q.QP = w.qps[w.r.IntN(len(w.qps))].Handle
	} else {
		q.Param.QPN = 77
	}
	if w.r.IntN(2) == 0 {
		h, err := w.c.CMConnect(ctx, q)
		if err == nil {
			w.ids = append(w.ids, h)
		}
		return err
	}
	var told sync.WaitGroup
	told.Add(1)
	var h command.Handle
	var refused error
	err := w.c.BeginConnect(ctx, q, func(made command.Handle, err error) {
		h, refused = made, err
		told.Done()
	})
	if err != nil {
		return err
	}
	told.Wait()
	if refused == nil {
		w.ids = append(w.ids, h)
	}
	return refused
}
