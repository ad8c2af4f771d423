package verbs

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// stressFor is how long programs are killed, or overwrite their rings, while others run.
const stressFor = 3 * time.Second

// beside runs programs that check their data, again and again, at least three times, until it is told to stop. Every
// one has to succeed.
func (b *bench) beside(stop *atomic.Bool) (rounds int) {
	b.t.Helper()
	for (!stop.Load() || rounds < 3) && !b.t.Failed() {
		b.talk(pair{server: "ibv_rc_pingpong -g 0 -n 200 -c -p PORT -d softvpi0",
			client: "ibv_rc_pingpong -g 0 -n 200 -c -p PORT -d softvpi1 127.0.0.1", says: "200 iters"})
		rounds++
	}
	return rounds
}

// settled waits until the driver has nothing left of programs that have ended.
func (b *bench) settled() {
	b.t.Helper()
	admin := api.NewClient(b.socket)
	var st *api.Status
	none := func() bool {
		var err error
		if st, err = admin.Status(b.t.Context()); err != nil {
			b.t.Fatalf("the driver does not answer any more: %v", err)
		}
		left := len(st.Programs)
		for _, a := range st.Adapters {
			for _, n := range a.Objects {
				left += n
			}
		}
		return left == 0
	}
	if !await.Until(none) {
		b.t.Fatalf("of programs that ended, this is left: %+v, %+v", st.Programs, st.Adapters)
	}
}

// Programs are killed at any moment, and others notice nothing.
func TestKilledPrograms(t *testing.T) {
	b := newBench(t)
	b.need("ibv_rc_pingpong", "ib_send_bw", "rping")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var stop atomic.Bool
	killed := make(chan int)
	commands := []string{"ibv_rc_pingpong -g 0 -n 100000000 -p PORT -d softvpi0",
		"ibv_srq_pingpong -g 0 -n 100000000 -e -p PORT -d softvpi1",
		"ib_send_bw -x 0 -F -D 60 -p PORT -d softvpi0", "ib_write_lat -x 0 -F -n 1000000 -p PORT -d softvpi1"}
	victims := func() (n int) {
		for end := time.Now().Add(stressFor); time.Now().Before(end); n++ {
			at := port()
			command := b.expand(commands[r.IntN(len(commands))], at)
			server := b.start(nil, command...)
			for i := 0; i < 50 && server.running() && !server.listens(at); i++ {
				time.Sleep(5 * time.Millisecond)
			}
			client := b.start(nil, append(command, "127.0.0.1")...)
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			first, second := client, server
			if r.IntN(2) == 0 {
				first, second = server, client
			}
			first.stop()
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			second.stop()
		}
		stop.Store(true)
		return n
	}
	go func() { killed <- victims() }()
	rounds := b.beside(&stop)
	stop.Store(true)
	t.Logf("%d pairs were killed while %d pairs ran to their end", <-killed, rounds)
	b.settled()
}

// Programs that first behave like any other, and then write into their rings noise, indexes that were never reached
// or requests that make no sense, harm nobody else.
func TestHostilePrograms(t *testing.T) {
	b := newBench(t)
	b.need("ibv_rc_pingpong")
	exe := filepath.Join(t.TempDir(), "scribble")
	if out, err := exec.Command("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I../../clib", "-o", exe, "testdata/scribble.c",
		filepath.Join(libraries.dir, "libibverbs.so.1"), "-pthread").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seed := rand.Uint32()
	t.Logf("seed %d", seed)
	var stop atomic.Bool
	made := make(chan int)
	ways := []string{"noise", "indexes", "entries"}
	go func() {
		n := 0
		for end := time.Now().Add(stressFor); n < len(ways) || time.Now().Before(end); n++ {
			p := b.start(nil, exe, fmt.Sprintf("softvpi%d", n%2), fmt.Sprint(seed+uint32(n)), ways[n%len(ways)])
			attached := func() bool { return strings.Contains(p.out.String(), "attached") }
			for p.running() && !attached() {
				time.Sleep(time.Millisecond)
			}
			for i := 0; i < 200 && p.running(); i++ {
				time.Sleep(time.Millisecond)
			}
			p.stop()
			if !attached() {
				t.Errorf("scribble %d: %v, %s", n, p.err, p.out.String())
				break
			}
		}
		stop.Store(true)
		made <- n
	}()
	rounds := b.beside(&stop)
	stop.Store(true)
	t.Logf("%d programs scribbled while %d pairs ran to their end", <-made, rounds)
	b.settled()
}
