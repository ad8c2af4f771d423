package interop

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// peer is the verbs program in the guest; peer/peer.c describes its commands.
type peer struct {
	t      testing.TB
	run    *run
	excuse *excuse // for requests that lost all of their retries; nil: none
}

func (g *guest) peer(t testing.TB) *peer {
	t.Helper()
	return &peer{t: t, run: g.program(t, "peer", fmt.Sprint(await.Limit.Milliseconds()))}
}

// answer holds the words of an answer.
type answer map[string]string

func (a answer) num(t testing.TB, name string) uint64 {
	t.Helper()
	n, err := strconv.ParseInt(a[name], 0, 64)
	if err != nil {
		t.Fatalf("the peer's answer %v has no number %s", a, name)
	}
	return uint64(n)
}

func (a answer) bytes(t testing.TB, name string) []byte {
	t.Helper()
	b, err := hex.DecodeString(a[name])
	if err != nil {
		t.Fatalf("the peer's answer %v has no bytes %s", a, name)
	}
	return b
}

// try gives a command, and returns the answer and whether it was ok.
func (p *peer) try(format string, args ...any) (answer, bool) {
	p.t.Helper()
	cmd := fmt.Sprintf(format, args...)
	if _, err := p.run.Write([]byte(cmd + "\n")); err != nil {
		p.t.Fatalf("peer %s: %v", cmd, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*await.Limit) // it waits itself, for the connection manager several times
	defer cancel()
	line, err := p.run.line(ctx)
	if err != nil {
		p.t.Fatalf("peer %s: %v", cmd, err)
	}
	words := strings.Fields(line)
	a := answer{"": line}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		a[name] = value
	}
	return a, words[0] == "ok"
}

// do gives a command that must succeed.
func (p *peer) do(format string, args ...any) answer {
	p.t.Helper()
	a, ok := p.try(format, args...)
	if !ok {
		p.t.Fatalf("peer %s: %s", fmt.Sprintf(format, args...), a[""])
	}
	return a
}

// later gives a command, and returns a function that waits for its answer, which must be ok. Only one command may be
// in progress at a time.
func (p *peer) later(format string, args ...any) func() answer {
	ch := make(chan answer, 1)
	go func() {
		a, ok := p.try(format, args...)
		if !ok {
			p.t.Errorf("peer %s: %s", fmt.Sprintf(format, args...), a[""])
			a = nil
		}
		ch <- a
	}()
	return func() answer {
		p.t.Helper()
		a := <-ch
		if a == nil {
			p.t.FailNow()
		}
		return a
	}
}

// Statuses and opcodes of libibverbs completions.
const (
	wcSuccess      = 0
	wcLocLen       = 1
	wcLocQPOp      = 2
	wcFlush        = 5
	wcRemInvReq    = 9
	wcRemAccess    = 10
	wcRemOp        = 11
	wcRetry        = 12
	wcRNRRetry     = 13
	wcRecv         = 128
	wcRecvWrite    = 129
	wcFlagGRH      = 1
	wcFlagImm      = 2
	wcFlagInv      = 8
	stateRTS       = 3
	stateErr       = 6
	cmRejected     = 8
	cmDisconnected = 10
)

// peerWC is a work completion of the peer.
type peerWC struct {
	wr             uint64
	status, opcode int
	length, imm    uint32
	flags          int
	srcQP          uint32
}

// poll takes n completions of an end.
func (p *peer) poll(id uint64, n int) []peerWC {
	p.t.Helper()
	a := p.do("poll id=%d n=%d", id, n)
	list := p.completions(a)
	if len(list) != n {
		p.t.Fatalf("the peer has %d completions, want %d: %s", len(list), n, a[""])
	}
	for _, w := range list {
		if w.status == wcRetry {
			p.excuse.takes(p.t, fmt.Sprintf("the peer's request %d", w.wr))
		}
	}
	return list
}

func (p *peer) completions(a answer) []peerWC {
	var list []peerWC
	for _, s := range strings.FieldsFunc(a["wc"], func(r rune) bool { return r == ',' }) {
		var c peerWC
		if _, err := fmt.Sscanf(s, "%d/%d/%d/%d/%d/%d/%d", &c.wr, &c.status, &c.opcode, &c.length, &c.imm, &c.flags, &c.srcQP); err != nil {
			p.t.Fatalf("completion %q: %v", s, err)
		}
		list = append(list, c)
	}
	return list
}

// one takes the next completion of an end, which must have this status.
func (p *peer) one(id uint64, status int) peerWC {
	p.t.Helper()
	c := p.poll(id, 1)[0]
	if c.status != status {
		p.t.Fatalf("the peer's completion is %+v, want status %d", c, status)
	}
	return c
}

// region is registered memory of the peer.
type region struct {
	peer       *peer
	mr         uint64
	addr, rkey uint64
}

func (p *peer) region(size int, access string) region {
	p.t.Helper()
	a := p.do("mr size=%d access=%s", size, access)
	return region{p, a.num(p.t, "mr"), a.num(p.t, "addr"), a.num(p.t, "rkey")}
}

func (r region) fill(off, n, seed int) {
	r.peer.t.Helper()
	r.peer.do("fill mr=%d off=%d len=%d seed=%d", r.mr, off, n, seed)
}

// check fails the test unless the bytes are those of the seed.
func (r region) check(off, n, seed int) {
	r.peer.t.Helper()
	if bad := int64(r.peer.do("check mr=%d off=%d len=%d seed=%d", r.mr, off, n, seed).num(r.peer.t, "bad")); bad >= 0 {
		r.peer.t.Fatalf("the peer's byte %d of %d is wrong", bad, n)
	}
}

// pattern returns the byte at position i of the pattern of a seed, as in peer.c.
func pattern(i, seed int) byte { return byte(i*131 + (i>>8)*17 + (i>>16)*29 + seed*7 + 1) }

func fill(b []byte, seed int) {
	for i := range b {
		b[i] = pattern(i, seed)
	}
}

func check(t testing.TB, b []byte, seed int) {
	t.Helper()
	for i := range b {
		if b[i] != pattern(i, seed) {
			t.Fatalf("byte %d of %d is wrong", i, len(b))
		}
	}
}
