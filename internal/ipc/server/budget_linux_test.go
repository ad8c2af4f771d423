package server_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// attachedBytes is what a program that takes no part in the direct path takes by attaching with a copier.
var attachedBytes = uint64(
	server.SessionBytes + (ring.DoorbellGeometry(fake.Doorbells).Size()+64<<10)&^(64<<10-1) + 256<<10 + 2*stream.TrackSize() +
		reach.CopierSize,
)

// memoryFor returns limits with room for about so many bytes beside what programs take by attaching.
func memoryFor(program, total uint64) budget.Limits {
	return budget.Limits{Program: program + attachedBytes, User: total + 3*attachedBytes, Total: total + 3*attachedBytes}
}

// used is what the driver holds for programs.
func used(s *server.Server, r budget.Resource) uint64 { return s.Ledger().Usage(r).Used }

// TestEverythingIsGivenBack: when programs have ended, however they ended, nothing is held for them any more.
func TestEverythingIsGivenBack(t *testing.T) {
	h := &fake.Host{}
	s, path := fake.Serve(t, h, server.Config{})
	for _, o := range []client.Options{{}, {Path: command.MemoryCopier}, {NoDirect: true}} {
		c := dial(t, path, o)
		if _, _, err := c.AllocSegment(ctx, 1<<20); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 8192}); err != nil {
			t.Fatal(err)
		}
		if used(s, budget.Memory) < 1<<20+server.SessionBytes || used(s, budget.Descriptors) == 0 {
			t.Errorf("%+v: %d bytes and %d descriptors are counted", o, used(s, budget.Memory), used(s, budget.Descriptors))
		}
		c.Close()
		await.Eventually(t, "all was given back", func() bool { return used(s, budget.Memory) == 0 && used(s, budget.Descriptors) == 0 })
	}
	dialRaw(t, path).put([]byte{1, 2, 3})
	refused := goodHello()
	refused.Major++
	r := dialRaw(t, path)
	r.put(proto.AppendFrame(nil, proto.OpHello, 0, 1, proto.Encode(refused)))
	if !strings.Contains(r.end(), "version") {
		t.Error("the program was not refused")
	}
	await.Eventually(
		t,
		"the refused program is gone",
		func() bool { return used(s, budget.Memory) == 0 && used(s, budget.Descriptors) <= 1 },
	)
}

// TestMemoryOfAProgram: a program that has all the memory that it may make the driver hold gets an error that names the
// limit, for rings, segments and another attachment alike; one that does not is served.
func TestMemoryOfAProgram(t *testing.T) {
	h := &fake.Host{}
	told := make(chan server.Refusal, 8)
	s, path := fake.Serve(t, h, server.Config{Memory: memoryFor(8<<20, 16<<20), Refused: func(r server.Refusal) { told <- r }})
	a, b := dial(t, path, client.Options{}), dial(t, path, client.Options{})
	for name, grow := range map[string]func() error{
		"segments": func() error { _, _, err := a.AllocSegment(ctx, 1<<20); return err },
		"rings":    func() error { _, err := a.CreateCQ(ctx, command.CreateCQ{Depth: 8192}); return err },
	} {
		var err error
		for range 200 {
			if err = grow(); err != nil {
				break
			}
		}
		if !fake.IsCode(err, command.Exhausted) || !strings.Contains(err.Error(), "limits.memory_per_program") {
			t.Errorf("%s beyond the limit: %v", name, err)
		}
	}
	if u := s.Ledger().Usage(budget.Memory); u.Refused < 2 {
		t.Errorf("%d refusals are counted", u.Refused)
	}
	await.Eventually(t, "the refusal is told", func() bool { return len(told) > 0 })
	if r := <-told; r.PID != os.Getpid() || !fake.IsCode(r.Cause, command.Exhausted) {
		t.Errorf("told: %+v", r)
	}
	if _, _, err := b.AllocSegment(ctx, 1<<20); err != nil {
		t.Errorf("another program: %v", err)
	}
	if len(told) != 0 {
		t.Errorf("further refusals are told: %+v", <-told)
	}
	if _, err := a.AllocPD(ctx, 0); err != nil {
		t.Errorf("the program itself is served no more: %v", err)
	}
}

// TestMemoryOfAllPrograms: when all programs together have what they may have, the next one is told so when it
// attaches, and attaches when another one has ended.
func TestMemoryOfAllPrograms(t *testing.T) {
	one := budget.Limits{Program: 2 * attachedBytes, User: 2 * attachedBytes, Total: attachedBytes}
	s, path := fake.Serve(t, &fake.Host{}, server.Config{Memory: one})
	a, err := client.Dial(context.Background(), path, client.Options{Path: command.MemoryCopier})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Dial(context.Background(), path, client.Options{Path: command.MemoryCopier})
	if !fake.IsCode(err, command.Exhausted) || !strings.Contains(err.Error(), "(limits.memory)") {
		t.Errorf("a second program: %v", err)
	}
	if _, err := a.AllocPD(ctx, 0); err != nil {
		t.Errorf("the first program is served no more: %v", err)
	}
	a.Close()
	await.Eventually(t, "all was given back", func() bool { return used(s, budget.Memory) == 0 })
	dial(t, path, client.Options{Path: command.MemoryCopier})
}

// TestProgramWithoutDescriptors: a driver that has no descriptors left refuses programs with an error that says so, and
// charges nothing for them.
func TestProgramWithoutDescriptors(t *testing.T) {
	s, path := fake.Serve(t, &fake.Host{}, server.Config{OpenFiles: 4}) // fewer than this process has open
	if _, err := client.Dial(ctx, path, client.Options{}); !fake.IsCode(err, command.Exhausted) ||
		!strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("a program of a driver without descriptors: %v", err)
	}
	await.Eventually(t, "it is gone", func() bool { return s.Clients() == 0 && used(s, budget.Descriptors) == 0 })
}
