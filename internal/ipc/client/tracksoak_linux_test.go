package client_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

// soakTime is how long TestTracksSoak runs, unless SOFTVPI_TEST_SOAK_TIME says otherwise.
const soakTime = 5 * time.Second

// TestTracksSoak runs programs that send commands of all kinds, give up, fill their tracks, write random bytes into
// them and try to read what others have, and kills them in the middle of it. Those that behave get correct answers
// all the while, and nothing is left of the others.
func TestTracksSoak(t *testing.T) {
	systemtest.Mark(t)
	lasts, err := time.ParseDuration(os.Getenv("SOFTVPI_TEST_SOAK_TIME"))
	if err != nil {
		lasts = soakTime
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	addrs := testbed.Addrs()
	socket, dh := testbed.Driver(t, addrs)
	w := newWitness(t, socket, addrs)
	defer w.host.Close()
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	var runs atomic.Int64
	for i := range uint64(5) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, i))
			for time.Now().Before(end) && !t.Failed() {
				soakOne(t, r, socket, w.at, addrs)
				runs.Add(1)
			}
		})
	}
	for time.Now().Before(end) && !t.Failed() {
		w.look(t)
	}
	all.Wait()
	t.Logf("%d programs, %d answers to who behaves, the slowest took %v", runs.Load(), w.looks, w.slowest)
	ok(t, w.l.Close())
	await.Eventually(t, "nothing left of the others", func() bool {
		s := dh.Snapshot()
		want := device.ObjectCounts{PD: 1, CQ: 1, MR: 1, QP: 1}
		return len(s.Clients) == 1 && s.Adapters[0].Objects == want && s.Adapters[1].Objects == (device.ObjectCounts{})
	})
	w.look(t)
}

// soakOne starts one such program, kills it after a while, and checks what it said.
func soakOne(t *testing.T, r *rand.Rand, socket string, at netip.AddrPort, addrs [2]netip.Addr) {
	systemtest.Required(t)
	role := client.Roles[r.IntN(len(client.Roles))]
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s,%s,%s,%d", client.SoakVariable, role, socket, at, r.Uint64()>>1))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, bad := range []string{"FAULT", "panic", "DATA RACE", "fatal error", "SIG"} {
		if strings.Contains(said.String(), bad) {
			t.Errorf("a %s reported: %s", role, said.String())
			return
		}
	}
	if line != "ready\n" && role != "vandal" && said.Len() > 0 {
		t.Errorf("a %s is not ready: %s", role, said.String())
	}
}

// witness is a program that behaves and watches that it is served correctly.
type witness struct {
	host    *verbs.Host
	qp      *verbs.QP
	mr      *verbs.MR
	l       *verbs.Listener
	at      netip.AddrPort
	looks   int
	slowest time.Duration
}

func newWitness(t *testing.T, socket string, addrs [2]netip.Addr) *witness {
	ctx := testbed.Context(t)
	host := get(verbs.Attach(ctx, socket))(t)
	dev := get(host.DeviceByAddr(addrs[0]))(t)
	pd := get(dev.AllocPD())(t)
	cq := get(dev.CreateCQ(16))(t)
	w := &witness{host: host, mr: get(pd.Allocate(4096, everything))(t)}
	w.qp = get(pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4}))(t)
	copy(w.mr.Bytes(), client.Secret)
	w.l = get(dev.Listen(netip.AddrPortFrom(addrs[0], 0), 64))(t)
	w.at = w.l.Addr()
	go w.refuse()
	return w
}

// refuse refuses those who want to connect, with an answer or without.
func (w *witness) refuse() {
	for n := 0; ; n++ {
		id, err := w.l.Request(context.Background())
		if err != nil {
			return
		}
		if n%2 == 0 {
			_ = id.Reject(nil)
		}
		_ = id.Close()
	}
}

// look asks the driver for something, checks that the right answer comes in time, and that its memory is unchanged.
func (w *witness) look(t *testing.T) {
	began := time.Now()
	info, err := w.qp.Query()
	if err != nil || info.State != verbs.StateReset {
		t.Fatalf("the QP is %+v (%v), want it in Reset", info, err)
	}
	took := time.Since(began)
	if w.slowest = max(w.slowest, took); took > 20*time.Second {
		t.Fatalf("the driver took %v for an answer", took)
	}
	if !bytes.HasPrefix(w.mr.Bytes(), client.Secret) {
		t.Fatal("somebody wrote into the memory of another program")
	}
	w.looks++
	time.Sleep(time.Millisecond)
}
