package remote_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// wants checks the class of an error.
func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// flushed takes completions of receives that were flushed, which have these IDs.
func (e *end) flushed(t testing.TB, from, to uint64) {
	t.Helper()
	for id := from; id < to; id++ {
		var wc [1]verbs.WC
		if _, err := e.cq.Next(testbed.Context(t), wc[:]); err != nil || wc[0].ID != id || wc[0].Status != verbs.WRFlush {
			t.Fatalf("completion %d: %+v, %v", id, wc[0], err)
		}
	}
}

// TestAway_ResizeCQ: a completion queue gets other sizes while it holds completions, which are neither lost nor reordered, and none in
// which those that wait have no room.
func TestAway_ResizeCQ(t *testing.T) {
	addrs := testbed.Addrs()
	driver, _ := testbed.Driver(t, addrs)
	socket, _ := away(t, driver)
	e := newEnd(t, socket, addrs[0], 4096)
	ok(t, e.qp.Flush())
	posted := uint64(0)
	post := func(n int) {
		t.Helper()
		for range n {
			wr := verbs.RecvWR{ID: posted}
			await.Eventually(t, fmt.Sprint("there is room for receive ", posted), func() bool {
				err := e.qp.PostRecv(&wr)
				if err != nil && !verbs.IsQueueFull(err) {
					t.Fatal(err)
				}
				return err == nil
			})
			posted++
		}
	}
	post(12)
	var wc [1]verbs.WC
	e.flushed(t, 0, 1)
	await.Eventually(t, "the completions are there, and a queue for fewer is refused", func() bool {
		return errors.Is(e.cq.Resize(8), verbs.ErrBusy) // those that are on their way do not count
	})
	e.flushed(t, 1, 12)
	ok(t, e.cq.Resize(256))
	if d := e.cq.Depth(); d < 256 {
		t.Errorf("depth is %d, want 256", d)
	}
	for round := range uint64(6) { // from one ring to the next, whose memory has been another's
		post(8) // and eight more: as many as there may be that are not polled
		ok(t, e.cq.Resize(64<<(round%3)))
		post(8)
		e.flushed(t, 12+16*round, 28+16*round)
	}
	if n, err := e.cq.Poll(wc[:]); n != 0 || err != nil {
		t.Errorf("%d more completions, %v", n, err)
	}
}

// TestAway_ResizeSRQ: receives that wait keep their order when their queue gets another size, and go on where it left.
func TestAway_ResizeSRQ(t *testing.T) {
	addrs := testbed.Addrs()
	driver, _ := testbed.Driver(t, addrs)
	socket, _ := away(t, driver)
	s, c := newEnd(t, socket, addrs[0], 1<<16), newEnd(t, driver, addrs[1], 4096)
	srq, err := s.qp.PD().CreateSRQ(verbs.SRQConfig{Depth: 4, MaxSGE: 2})
	ok(t, err)
	pd := s.qp.PD()
	ok(t, s.qp.Close())
	s.qp, err = pd.CreateQP(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, SRQ: srq, SendDepth: 4})
	ok(t, err)
	connect(t, s, c, addrs[0])
	posted, taken := uint64(0), uint64(0)
	post := func(n int) {
		t.Helper()
		for range n {
			wr := verbs.RecvWR{ID: posted, SGE: []verbs.SGE{s.mr.SGE(int(posted%64)*64, 64)}}
			await.Eventually(t, "there is room for a receive", func() bool { return srq.PostRecv(&wr) == nil })
			posted++
		}
	}
	message := func() {
		t.Helper()
		c.mr.Bytes()[0] = byte(taken)
		c.do(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{c.mr.SGE(0, 8)}})
		var wc [1]verbs.WC
		_, err := s.cq.Next(testbed.Context(t), wc[:])
		if ok(t, err); wc[0].ID != taken || wc[0].Status != verbs.Success || s.mr.Bytes()[taken%64*64] != byte(taken) {
			t.Fatalf("message %d: %+v", taken, wc[0])
		}
		taken++
	}
	post(4)
	message()
	post(1)
	ok(t, srq.Resize(200))
	info, err := srq.Query()
	if ok(t, err); srq.Depth() < 200 || info.Depth != srq.Depth() || info.Posted != 4 {
		t.Errorf("depth %d, state %+v; want 200 with 4 posted", srq.Depth(), info)
	}
	post(60)
	wants(t, srq.Resize(32), verbs.ErrBusy) // 64 wait
	for taken < posted-3 {
		message()
	}
	ok(t, srq.Resize(4))
	post(1)
	for taken < posted {
		message()
	}
	for range 20 { // more than the ring holds
		post(1)
		message()
	}
}

// TestAway_DeviceMemory: device memory is reached by peers and by the program, is taken from the adapter's, and stays while regions are
// in it.
func TestAway_DeviceMemory(t *testing.T) {
	addrs := testbed.Addrs()
	driver, _ := testbed.Driver(t, addrs)
	socket, _ := away(t, driver)
	s, c := newEnd(t, socket, addrs[0], 4096), newEnd(t, driver, addrs[1], 4096)
	connect(t, s, c, addrs[0])
	pd := s.qp.PD()
	most, _, err := pd.Device().DMSize()
	ok(t, err)
	dm, err := pd.Device().AllocDM(8192)
	ok(t, err)
	if _, err := pd.Device().AllocDM(int(most)); err == nil {
		t.Error("what is taken can be allocated")
	}
	mr, err := dm.Register(pd, 4096, 64, everything)
	ok(t, err)
	wants(t, dm.Free(), verbs.ErrBusy)
	copy(c.mr.Bytes(), "to device memory")
	c.do(t, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{c.mr.SGE(0, 16)}, RemoteAddr: 8, RKey: mr.RKey()})
	var got [16]byte
	_, err = dm.ReadAt(got[:], 4096+8)
	if ok(t, err); string(got[:]) != "to device memory" {
		t.Errorf("a peer wrote %q", got)
	}
	_, err = dm.WriteAt([]byte{40, 0, 0, 0, 0, 0, 0, 0}, 4096+32)
	ok(t, err)
	c.do(t, verbs.SendWR{Op: verbs.OpFetchAdd, SGE: []verbs.SGE{c.mr.SGE(64, 8)}, RemoteAddr: 32, RKey: mr.RKey(), Add: 2})
	if _, err = dm.ReadAt(got[:8], 4096+32); err != nil || got[0] != 42 || c.mr.Bytes()[64] != 40 {
		t.Errorf("fetch and add: %d, then %d, %v; want 40 and 42", c.mr.Bytes()[64], got[0], err)
	}
	ok(t, mr.Deregister())
	ok(t, dm.Free())
	all, err := pd.Device().AllocDM(int(most))
	ok(t, err)
	ok(t, all.Free())
}

// TestAway_Import: a program of the machine gets objects of another one there whose token it has, and nobody gets those of programs
// elsewhere.
func TestAway_Import(t *testing.T) {
	addrs := testbed.Addrs()
	driver, _ := testbed.Driver(t, addrs)
	socket, _ := away(t, driver)
	ctx := testbed.Context(t)
	attach := func(socket string) *client.Client {
		c, err := client.Dial(ctx, socket, client.Options{})
		ok(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	asks := func(c *client.Client, op proto.Opcode, body []byte) ([]byte, error) {
		type reply struct {
			body []byte
			err  error
		}
		told := make(chan reply, 1)
		ok(t, c.Relay(ctx, op, body, func(b []byte, err error) { told <- reply{append([]byte(nil), b...), err} }))
		r := <-told
		return r.body, r.err
	}
	one, two, elsewhere := attach(socket), attach(socket), attach(driver)
	b, err := asks(one, proto.OpExport, nil)
	ok(t, err)
	token, err := proto.Decode[proto.Exported](b)
	ok(t, err)
	imports := func(c *client.Client, kind command.Kind, h command.Handle) (r proto.Imported, err error) {
		b, err := asks(c, proto.OpImport, proto.Encode(proto.ImportArgs{Token: token.Token, Kind: kind, Handle: h}))
		if err == nil {
			r, err = proto.Decode[proto.Imported](b)
		}
		return r, err
	}
	pd, err := one.AllocPD(ctx, 0)
	ok(t, err)
	dm, _, err := one.AllocDM(ctx, command.AllocDM{Size: 100})
	ok(t, err)
	_, err = imports(two, 0, 0)
	ok(t, err)
	own, err := imports(two, command.KindPD, pd)
	ok(t, err)
	_, err = two.AllocWindow(ctx, own.Handle, 1)
	ok(t, err)
	memory, err := imports(two, command.KindDM, dm.Handle)
	if ok(t, err); memory.Size < 100 || memory.Segment == 0 {
		t.Errorf("device memory %+v", memory)
	}
	notFound := &command.Error{Code: command.NotFound}
	_, err = imports(two, command.KindPD, 0x1ffffff)
	wants(t, err, notFound)
	_, err = imports(elsewhere, command.KindPD, pd)
	wants(t, err, notFound)
	ok(t, one.Close())
	await.Eventually(t, "the program is gone", func() bool {
		_, err := imports(two, 0, 0)
		return errors.Is(err, notFound)
	})
	ok(t, two.Destroy(ctx, command.KindDM, memory.Handle))
	_, err = two.AllocWindow(ctx, own.Handle, 1)
	ok(t, err) // the domain is the same, and lasts
}
