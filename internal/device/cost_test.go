package device

import (
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// paying makes a program with an account, and the ledger of that.
func paying(t *testing.T, h *Host, adapter uint32, limit uint64) (*program, *budget.Ledger, *budget.Account) {
	t.Helper()
	l := budget.New(budget.Limits{Program: limit, User: limit, Total: limit}, budget.Share(1<<20))
	a := l.Open(0)
	return newProgramWith(t, h, adapter, ClientConfig{Name: t.Name(), PID: 1, Account: a}), l, a
}

// makers make objects of each kind, after what those need.
func makers(p *program) map[command.Kind]func() (command.Handle, error) {
	cq := p.cq(16)
	local := command.Endpoint{Addr: command.AddrFrom(p.addr)}
	mem := &buffer{b: p.pages(4096)}
	return map[command.Kind]func() (command.Handle, error){
		command.KindPD: func() (command.Handle, error) { return p.c.AllocPD(bg, p.adapter) },
		command.KindMemory: func() (command.Handle, error) {
			m, err := p.c.RegisterMemory(bg, command.RegisterMemory{PD: p.pd, Access: uint32(allRights), Base: mem.addr(0), Length: 4096})
			return m.Handle, err
		},
		command.KindWindow: func() (command.Handle, error) {
			m, err := p.c.AllocWindow(bg, p.pd, 1)
			return m.Handle, err
		},
		command.KindCQ: func() (command.Handle, error) {
			q, err := p.c.CreateCQ(bg, command.CreateCQ{Adapter: p.adapter, Depth: 1})
			return q.Handle, err
		},
		command.KindSRQ: func() (command.Handle, error) {
			q, err := p.c.CreateSRQ(bg, command.CreateSRQ{PD: p.pd, Depth: 1, MaxSGE: 1})
			return q.Handle, err
		},
		command.KindQP: func() (command.Handle, error) {
			q, err := p.c.CreateQP(bg, command.CreateQP{PD: p.pd, Type: command.RC, SendCQ: cq.q.Handle, RecvCQ: cq.q.Handle, SendDepth: 1,
				RecvDepth: 1})
			return q.Handle, err
		},
		command.KindAH: func() (command.Handle, error) {
			return p.c.CreateAH(bg, command.CreateAH{PD: p.pd, AV: command.AddressVector{Addr: command.AddrFrom(p.addr), HopLimit: 64}})
		},
		command.KindCM: func() (command.Handle, error) {
			id, err := p.c.CMCreate(bg, command.CMCreate{Space: command.TCP, Adapter: command.AnyAdapter})
			if err == nil {
				_, err = p.c.CMBind(bg, id, local)
			}
			return id, err
		},
		command.KindChannel: func() (command.Handle, error) {
			return p.c.CreateChannel(bg, command.CreateChannel{Kind: command.Completions}, func(command.Handle) bool { return false })
		},
	}
}

// TestObjectsCostWhatTheyTake: an object of each kind is charged for at least the memory that it takes, apart from its
// rings, and not for ten times as much. Destroying it gives that back.
func TestObjectsCostWhatTheyTake(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	p, l, _ := paying(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr()}), 1<<40)
	for kind, create := range makers(p) {
		const n = 4000
		rings := func() uint64 { _, total := p.c.arena.Used(); return total }
		list := make([]command.Handle, 0, n)
		before, arenas, charged := heap(), rings(), l.Usage(budget.Memory).Used
		for range n {
			o, err := create()
			if err != nil {
				t.Fatalf("%s: %v", costs[kind].name, err)
			}
			list = append(list, o)
		}
		took := int64(heap()-before) - int64(rings()-arenas)
		cost := l.Usage(budget.Memory).Used - charged
		t.Logf("%s takes %d bytes and costs %d", costs[kind].name, took/n, cost/n)
		if took > int64(cost) || kind != command.KindChannel && took < int64(cost)/10 {
			t.Errorf("%s takes %d bytes and costs %d", costs[kind].name, took/n, cost/n)
		}
		for _, o := range list {
			if err := p.c.Destroy(bg, kind, o); err != nil {
				t.Fatal(err)
			}
		}
		if left := l.Usage(budget.Memory).Used; left != charged {
			t.Errorf("%s: %d bytes more are charged than before, after all were destroyed", costs[kind].name, int64(left-charged))
		}
	}
}

// TestNoMemoryForObjects: a program without memory left gets Exhausted for an object of any kind, with the name of the
// limit; what it has goes on, and there is nothing of the object that was refused.
func TestNoMemoryForObjects(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	adapter := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	p, l, account := paying(t, h, adapter, 1<<30)
	all := makers(p)
	if err := account.Take(budget.Memory, 1<<30-l.Usage(budget.Memory).Used, "the rest"); err != nil {
		t.Fatal(err)
	}
	live := p.c.live()
	for kind, create := range all {
		if _, err := create(); !errors.Is(err, &command.Error{Code: command.Exhausted}) ||
			!strings.Contains(err.Error(), "limits.memory_per_program") {
			t.Errorf("%s without memory: %v", costs[kind].name, err)
		}
	}
	if n := p.c.live(); n != live || l.Usage(budget.Memory).Refused != uint64(len(all)) {
		t.Errorf("%d objects, had %d; refused %d times, of %d", n, live, l.Usage(budget.Memory).Refused, len(all))
	}
	account.Give(budget.Memory, 1<<20)
	for kind, create := range all {
		if _, err := create(); err != nil {
			t.Errorf("%s with memory again: %v", costs[kind].name, err)
		}
	}
}
