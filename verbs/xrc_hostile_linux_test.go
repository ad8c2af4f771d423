package verbs_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// stormer is a program that asks the driver for anything, with handles and numbers of its own, of others and of nobody.
type stormer struct {
	t       *testing.T
	c       *client.Client
	r       *rand.Rand
	own     map[command.Kind][]command.Handle
	foreign []command.Handle
	numbers []uint32
	granted map[string]int
}

// handle returns one that the request wants more often than not: of an object of its own of this kind.
func (s *stormer) handle(kind command.Kind) command.Handle {
	if own := s.own[kind]; len(own) > 0 && s.r.IntN(5) > 0 {
		return own[s.r.IntN(len(own))]
	}
	switch s.r.IntN(4) {
	case 0:
		return command.Handle(s.r.Uint32())
	case 1:
		return 0
	case 2:
		if other := s.own[command.Kind(s.r.IntN(13))]; len(other) > 0 {
			return other[s.r.IntN(len(other))]
		}
	}
	return s.foreign[s.r.IntN(len(s.foreign))]
}

func (s *stormer) number() uint32 {
	if s.r.IntN(4) == 0 {
		return s.r.Uint32() >> s.r.IntN(32)
	}
	return s.numbers[s.r.IntN(len(s.numbers))]
}

// odd returns a small number mostly, and sometimes any.
func (s *stormer) odd(n int) uint32 {
	if s.r.IntN(8) == 0 {
		return s.r.Uint32()
	}
	return uint32(s.r.IntN(n))
}

// none is mostly 0, where a request wants no object.
func (s *stormer) none(kind command.Kind) command.Handle {
	if s.r.IntN(8) > 0 {
		return 0
	}
	return s.handle(kind)
}

// keep remembers what was granted; what is refused has a reason.
func (s *stormer) keep(what string, kind command.Kind, h command.Handle, err error) {
	var refused *command.Error
	switch {
	case err == nil:
		s.granted[what]++
		if h != 0 {
			s.own[kind] = append(s.own[kind], h)
		}
	case !errors.As(err, &refused) || refused.Code == command.Internal || refused.Detail == "":
		s.t.Errorf("%s is refused with %v, want a reason", what, err)
	}
}

// The handles of stormers stay in their lists when the objects are gone, as those of careless programs do.
func (s *stormer) step(ctx context.Context) {
	switch s.r.IntN(12) {
	case 0:
		h, err := s.c.OpenXRCD(ctx, command.OpenXRCD{Adapter: s.odd(2), Flags: s.odd(9), Device: uint64(s.odd(2)), Inode: uint64(s.odd(3))})
		s.keep("OpenXRCD", command.KindXRCD, h, err)
	case 1, 2, 3:
		q, err := s.c.CreateXRCSRQ(ctx, command.CreateXRCSRQ{XRCD: s.handle(command.KindXRCD), CQ: s.handle(command.KindCQ),
			CreateSRQ: command.CreateSRQ{PD: s.handle(command.KindPD), Depth: s.odd(40), MaxSGE: s.odd(5), Limit: s.odd(3)}})
		s.keep("CreateXRCSRQ", command.KindSRQ, q.Handle, err)
	case 4, 5:
		q, err := s.c.OpenQP(ctx, command.OpenQP{XRCD: s.handle(command.KindXRCD), Number: s.number(), Context: s.r.Uint64()})
		s.keep("OpenQP", command.KindQP, q.Handle, err)
	case 6:
		q, err := s.c.CreateQP(ctx, command.CreateQP{Type: command.XRCTarget, XRCD: s.handle(command.KindXRCD),
			SRQ: s.none(command.KindSRQ), PD: s.none(command.KindPD), SendDepth: s.odd(8)})
		if s.keep("target", command.KindQP, q.Handle, err); err == nil {
			s.numbers = append(s.numbers, q.Number)
		}
	case 7:
		q, err := s.c.CreateQP(ctx, command.CreateQP{Type: command.XRCInitiator, PD: s.handle(command.KindPD),
			SendCQ: s.handle(command.KindCQ), RecvCQ: s.none(command.KindCQ), SRQ: s.none(command.KindSRQ), SendDepth: s.odd(8),
			SendSGE: s.odd(4)})
		s.keep("initiator", command.KindQP, q.Handle, err)
	case 8:
		mask := []command.QPMask{command.MaskState, command.MaskState | command.MaskPKey | command.MaskAccess, command.QPMask(s.r.Uint32())}
		err := s.c.ModifyQP(ctx, command.ModifyQP{QP: s.handle(command.KindQP), State: command.QPState(s.odd(8)), Mask: mask[s.r.IntN(3)],
			DestQPN: s.number(), MTU: 1024, Route: command.AddressVector{Addr: loop}})
		s.keep("ModifyQP", 0, 0, err)
	case 9:
		id, err := s.c.CMCreate(ctx, command.CMCreate{Adapter: s.odd(2), Space: command.IB})
		if s.keep("CMCreate", command.KindCM, id, err); err == nil {
			s.keep("CMOption", 0, 0, s.c.CMOption(ctx, command.CMOption{ID: id, Option: command.OptionQPType, Value: s.odd(7)}))
		}
	default:
		kind := command.Kind(s.odd(13))
		if h := s.handle(kind); h != 0 {
			s.keep("Destroy", 0, 0, s.c.Destroy(ctx, kind, h))
		}
	}
}

var loop = command.AddrFrom(netip.MustParseAddr("127.0.0.1"))

// Whatever a program asks of XRC, it gets no object of another, the connections of others go on, and what it got ends with it.
func TestHostileXRC(t *testing.T) {
	addrs := testbed.Addrs()
	socket, host := testbed.Driver(t, addrs)
	ctx := testbed.Context(t)
	h := must(verbs.Open(ctx, verbs.Options{Mode: verbs.Attached, Socket: socket}))(t)
	defer h.Close()
	here, there := must(h.DeviceByAddr(addrs[1]))(t), must(h.DeviceByAddr(addrs[0]))(t)
	receiver := newXRCReceiver(t, there, must(there.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
	sender := newXRCReceiver(t, here, must(here.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
	l := must(there.ListenXRC(netip.AddrPortFrom(there.Addr(), 0), 0))(t)
	good := meetXRC(t, l, here, sender, receiver)

	victim := must(client.Dial(ctx, socket, client.Options{Name: "victim"}))(t)
	defer victim.Close()
	theirs := victimOf(t, ctx, victim)
	before := objects(host)
	granted := map[string]int{}
	for round := range 6 {
		s := &stormer{
			t: t, c: must(client.Dial(ctx, socket, client.Options{Name: "stormer"}))(t), r: rand.New(rand.NewPCG(uint64(round), 7)),
			own: map[command.Kind][]command.Handle{}, foreign: theirs, granted: granted,
			numbers: []uint32{good.target.Number(), good.initiator.Number(), receiver.srq.Number()},
		}
		for i := range 1500 {
			if i%50 == 0 {
				pd, err := s.c.AllocPD(ctx, 0)
				s.keep("AllocPD", command.KindPD, pd, err)
				cq, err := s.c.CreateCQ(ctx, command.CreateCQ{Depth: 8})
				s.keep("CreateCQ", command.KindCQ, cq.Handle, err)
			}
			s.step(ctx)
			if i%500 == 0 {
				good.post(t, sender, receiver, "undisturbed")
			}
		}
		ok(t, s.c.Close())
		await.Eventually(t, "what the program had is gone", func() bool { return objects(host) == before })
	}
	for _, what := range []string{"OpenXRCD", "CreateXRCSRQ", "OpenQP", "target", "initiator", "ModifyQP", "CMOption", "Destroy"} {
		if granted[what] < 10 {
			t.Errorf("%s was granted %d times: this tests refusals alone", what, granted[what])
		}
	}
	good.post(t, sender, receiver, "to the end")
	for _, c := range []interface{ Close() error }{good.active, good.passive, l, good.initiator, good.target} {
		ok(t, c.Close())
	}
}

// victimOf gives a program one object of each kind, and returns their handles.
func victimOf(t *testing.T, ctx context.Context, c *client.Client) []command.Handle {
	pd := must(c.AllocPD(ctx, 0))(t)
	cq := must(c.CreateCQ(ctx, command.CreateCQ{Depth: 8}))(t)
	x := must(c.OpenXRCD(ctx, command.OpenXRCD{Flags: command.XRCDCreate}))(t)
	queue := command.CreateSRQ{PD: pd, Depth: 4, MaxSGE: 1}
	srq := must(c.CreateXRCSRQ(ctx, command.CreateXRCSRQ{XRCD: x, CQ: cq.Handle, CreateSRQ: queue}))(t)
	target := must(c.CreateQP(ctx, command.CreateQP{Type: command.XRCTarget, XRCD: x}))(t)
	return []command.Handle{pd, cq.Handle, x, srq.Handle, target.Handle}
}

// objects counts what all programs have.
func objects(h *device.Host) (n [2]device.ObjectCounts) {
	for i, a := range h.Snapshot().Adapters {
		n[i] = a.Objects
	}
	return n
}
