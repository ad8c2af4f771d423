package udp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/link"
	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/linktest"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// flowsOf is how many flows a stream has, each with a source port of its own.
const flowsOf = 3

// stream sends numbered packets of mixed sizes in several flows, for a while far ahead of the receiver and for a while
// close to it.
type stream struct {
	from    Link
	routes  [flowsOf]*frame.Route
	sent    [flowsOf]uint32
	arrived atomic.Int64
	total   atomic.Int64
	all     atomic.Bool // everything has been sent
	stop    atomic.Bool
}

func (s *stream) run(t *testing.T, many int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	random := rand.New(rand.NewPCG(3, 4))
	for s.total.Load() < many && !s.stop.Load() {
		window := int64(300)
		if s.total.Load()/1000%2 == 0 {
			window = 1
		}
		if s.total.Load()-s.arrived.Load() >= window {
			runtime.Gosched()
			continue
		}
		flow := random.IntN(flowsOf)
		sizes := []int{0, 8, 200, 1024, 4096}
		if random.IntN(20) == 0 { // a run of long packets, which makes a link prefer its socket
			sizes = []int{4096}
		}
		lengths := []int{8}
		for range random.IntN(6) {
			lengths = append(lengths, sizes[random.IntN(len(sizes))])
		}
		if random.IntN(2) == 0 { // a short packet right behind a long one
			lengths = append(lengths, 1024, 8)
		}
		frames := numbered(s.routes[flow], s.from.Capabilities(), s.sent[flow], lengths...)
		s.sent[flow] += uint32(len(lengths))
		for len(frames) > 0 {
			k, err := s.from.Send(frames)
			if err != nil {
				t.Error(err)
				return
			}
			frames = frames[k:]
		}
		s.total.Add(int64(len(lengths)))
		if random.IntN(64) == 0 {
			tend(s.from)
		}
	}
	s.all.Store(true)
}

// TestReceive_OnceAndInOrderWhileWaysChange: packets of mixed sizes each arrive exactly once, and those of one flow in
// the order in which they were sent, while programs at the interface's ingress come and go, the receiver sleeps and
// wakes, bursts prevail and end, and at last a firewall ends all frames.
func TestReceive_OnceAndInOrderWhileWaysChange(t *testing.T) {
	systemtest.Mark(t)
	for _, v6 := range []bool{false, true} {
		for _, polled := range []bool{false, true} {
			name := fmt.Sprintf("v6 %v, interface polled %v", v6, polled)
			t.Run(name, func(t *testing.T) { onceWhileWaysChange(t, v6, polled) })
		}
	}
}

func onceWhileWaysChange(t *testing.T, v6, polled bool) {
	n := newNamespaces(t, 9000)
	if polled {
		n.in(0, func() error { return ethtool("a", setTSO, 0) })
		n.in(1, func() error { return poll(t.TempDir(), "b") })
	}
	cfg := [2]Config{}
	if polled { // where the system coalesces, it lets packets of other headers overtake each other: frames those of sockets
		cfg[0].Frames = packet.Off
	}
	l := n.pairOf(cfg, v6)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	const many = 8_000
	s := &stream{from: l[0]}
	for i := range s.routes {
		s.routes[i] = &frame.Route{Dst: l[1].Status().Addr.Addr(), SrcPort: 0xc001 + uint16(i)}
		n.in(0, func() error { return l[0].Prepare(s.routes[i]) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(t, many)
	}()
	defer func() { s.stop.Store(true); <-done }()
	n.in(1, func() error { return arrivesOnce(t, l[1], s, many) })
	st := l[1].Stats()
	t.Logf("%d packets, %d as frames, %d of %d dropped", st.ReceivedPackets, st.ReceivedFrames, st.ReceiveDrops, many)
	if st.ReceivedFrames == 0 || st.ReceiveDrops != 0 {
		t.Errorf("%d packets came as frames, %d were dropped; want some and none", st.ReceivedFrames, st.ReceiveDrops)
	}
}

// Commands of linux/ethtool.h, which set one feature of an interface.
const (
	setTSO = 0x1f
	setGRO = 0x2c
)

func ethtool(name string, command, value uint32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	set := [2]uint32{command, value}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&set)}
	copy(request.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

// poll makes the system receive from a veth in batches, as from a network card: with coalescing, and a peer that does not
// segment, it has a queue of its own, which a thread empties.
func poll(dir, name string) error {
	if err := ethtool(name, setGRO, 1); err != nil {
		return err
	}
	// Files of interfaces are those of the network namespace in which sysfs was mounted. The thread ends with this call.
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := unix.Mount("sysfs", dir, "sysfs", 0, ""); err != nil {
		return err
	}
	return os.WriteFile(dir+"/class/net/"+name+"/threaded", []byte("1"), 0)
}

func arrivesOnce(t *testing.T, to Link, s *stream, many int64) error {
	var next [flowsOf]uint32
	var foreign link.Link
	walled := false
	got, handed, before := int64(0), uint64(0), to.Stats().ReceivedPackets
	in := make([]frame.In, 64)
	random := rand.New(rand.NewPCG(5, 6))
	last := time.Now()
	for deadline := time.Now().Add(await.Limit); !s.all.Load() || got < s.total.Load(); {
		k, err := to.Receive(in)
		if err != nil {
			return err
		}
		handed += uint64(k)
		for i := range in[:k] {
			psn := binary.BigEndian.Uint32(in[i].Data[8:])
			flow := int(in[i].SrcPort) - 0xc001
			if flow < 0 || flow >= flowsOf {
				continue // of the warm-up
			}
			if psn != next[flow] {
				return fmt.Errorf("flow %d: packet %d with %d bytes in place of %d, after %d: %+v", flow, psn, len(in[i].Data), next[flow],
					got, to.Stats())
			}
			next[flow]++
			got++
		}
		if s.arrived.Store(got); k > 0 {
			deadline = time.Now().Add(await.Limit)
		}
		if k == 0 && random.IntN(2000) == 0 && to.Capabilities().Sleeper.ArmWakeUp() {
			sleep(to, 5)
		}
		if time.Since(last) < time.Millisecond {
			if time.Now().After(deadline) {
				return fmt.Errorf("%d of %d packets arrived: %+v", got, s.total.Load(), to.Stats())
			}
			continue
		}
		last = time.Now()
		tend(to)
		switch {
		case foreign != nil && random.IntN(3) == 0:
			foreign.Close()
			foreign = nil
			look(to)
		case foreign == nil && random.IntN(3) == 0:
			foreign, _ = linktest.Ingress("b", linktest.Pass)
			look(to)
		case got > many*9/10 && !walled:
			walled = true
			if err := linktest.Chain("guard", nftables.ChainHookInput, true); err != nil {
				t.Logf("this kernel has no nftables: %v", err)
			}
			look(to)
		}
	}
	if foreign != nil {
		foreign.Close()
	}
	if k := receiveSome(t, to); k != 0 {
		return fmt.Errorf("%d packets came twice", k)
	}
	if counted := to.Stats().ReceivedPackets - before; counted != handed {
		return fmt.Errorf("%d packets were counted of %d", counted, handed)
	}
	return nil
}

// look makes a link find out what tc has, and whether there is a firewall.
func look(l Link) {
	for range 256 {
		tend(l)
	}
}

// sleep waits on the descriptors of a link.
func sleep(l Link, ms int) {
	var fds []unix.PollFd
	for _, fd := range l.Descriptors() {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(fds, ms) // an interruption ends a sleep as well
}

// TestReceive_FramesResumeAfterLoss: messages that are lost at a full socket, after the filter has counted them, keep
// short packets at the socket for a moment only, and count as lost.
func TestReceive_FramesResumeAfterLoss(t *testing.T) {
	v := variant{cfg: Config{ReceiveBuffer: 212992}}
	from, to := v.open(t), v.open(t)
	if to.Capabilities().Sleeper == nil {
		t.Skip(to.Status().Frames)
	}
	r := routeTo(t, from, to)
	long := numbered(r, from.Capabilities(), 0, 4096, 4096, 4096, 4096)
	for range 200 {
		sendAll(t, from, long)
	}
	drain(t, to)
	if s := to.Stats(); s.ReceiveDrops == 0 || s.ReceivedPackets == 0 {
		t.Fatalf("want some packets lost and some not: %+v", s)
	}
	await.Eventually(t, "a short packet comes into memory", func() bool {
		tend(to)
		before := to.Stats()
		sendAll(t, from, numbered(r, from.Capabilities(), 0, 8))
		receiveN(t, to, 1)
		receiveSome(t, to) // nothing, as a receiver finds before it sleeps
		return to.Stats().ReceivedFrames != before.ReceivedFrames
	})
}

// TestReceive_FindsWhatIsNotCounted: a message that counts as handed out, because it was on its way for too long, is
// found at the socket, and those after it are not late.
func TestReceive_FindsWhatIsNotCounted(t *testing.T) {
	from, to := variant{}.open(t), variant{}.open(t)
	i := to.(*socketLink).receive.intake
	if i == nil {
		t.Skip(to.Status().Frames)
	}
	r := routeTo(t, from, to)
	receive := func(psn uint32) {
		t.Helper()
		if got := binary.BigEndian.Uint32(receiveN(t, to, 1)[0].Data[8:]); got != psn {
			t.Fatalf("packet %d in place of %d", got, psn)
		}
	}
	sendAll(t, from, numbered(r, from.Capabilities(), 1, 4096))
	i.Handed(1)
	if n := receiveSome(t, to); n != 0 {
		t.Fatalf("%d packets without a look at the socket", n)
	}
	tend(to)
	receive(1)
	for psn := range uint32(10) {
		sendAll(t, from, numbered(r, from.Capabilities(), psn, 4096))
		receive(psn)
	}
}
