package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/seqpacket"
	"golang.org/x/sys/unix"
)

const (
	// maxOutlets limits the number of adapters in other processes that are plugged in, or about to be.
	maxOutlets = 1024
	helloTime  = 5 * time.Second
	// tellTime is how long an adapter may leave its port's state unread.
	tellTime = 10 * time.Second
)

// Listen opens the socket at which adapters in other processes are plugged in. Only this process's user
// may connect, and those whom mode permits, as for a file. A stale socket of an earlier process is
// removed; if another process answers there, Listen fails.
func Listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	if err := paths.Room(path); err != nil {
		return nil, fmt.Errorf("cables: %w", err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("cables: %s exists and is not a socket", path)
		}
		if c, err := net.Dial("unixpacket", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("cables: another fabric listens at %s", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("cables: %w", err)
		}
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		return nil, fmt.Errorf("cables: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, fmt.Errorf("cables: %w", err)
	}
	return l, nil
}

// Serve accepts adapters of other processes until ctx ends, which is no error. It closes the listener.
func (r *Rack) Serve(ctx context.Context, l *net.UnixListener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &outlets{rack: r, fabric: r.id, all: map[*local]bool{}}
	var err error
	if s.pump, err = newPump(r); err != nil {
		return err
	}
	var pumping sync.WaitGroup
	pumping.Go(s.pump.run)
	s.work.Go(func() {
		<-ctx.Done()
		l.Close()
		s.closeAll()
	})
	var failed error
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil {
				failed = fmt.Errorf("cables: %w", err)
			}
			break
		}
		s.accept(conn)
	}
	stop()
	s.work.Wait()
	s.pump.stop() // all adapters needed it until now
	pumping.Wait()
	return failed
}

// A frame of a cable fits a port of the fabric, and vice versa.
var _ [cable.MaxFrame]byte = [fabric.MaxFrame]byte{}

// outlets are the ports where adapters of other processes are plugged in.
type outlets struct {
	rack   *Rack
	fabric [16]byte
	pump   *pump
	work   sync.WaitGroup

	mu     sync.Mutex
	all    map[*local]bool
	closed bool
}

func (s *outlets) accept(conn *net.UnixConn) {
	o := &local{rack: s.rack, conn: conn, ring: -1, changed: make(chan struct{}, 1)}
	o.outlet = outlet{end: o, gone: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.all) >= maxOutlets {
		conn.Close()
		return
	}
	s.all[o] = true
	s.work.Go(func() {
		o.serve(s)
		s.mu.Lock()
		delete(s.all, o)
		s.mu.Unlock()
	})
}

func (s *outlets) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for o := range s.all {
		o.conn.Close()
	}
}

// local is the fabric's end of a cable to an adapter in another process of this host.
type local struct {
	outlet
	rack    *Rack
	conn    *net.UnixConn
	hello   cable.Hello
	changed chan struct{} // the port's state is to be sent

	// Only the pump uses the following fields.
	mem   []byte
	ring  int // the bell
	in    *cable.Consumer
	out   *cable.Producer
	room  int  // of out
	rings bool // the bell is to be rung
}

// serve runs from the Hello until the adapter has gone.
func (o *local) serve(s *outlets) {
	defer o.conn.Close()
	peer, err := o.plugIn(s)
	if err != nil {
		_ = o.conn.SetWriteDeadline(time.Now().Add(helloTime))
		_, _ = o.conn.Write(cable.Refuse(err.Error()))
		return
	}
	var told sync.WaitGroup
	told.Go(o.tellPort)
	s.pump.add(&o.outlet)
	o.listen()
	o.port.Close()
	o.conn.Close()
	s.pump.remove(&o.outlet)
	<-o.gone
	close(o.changed)
	told.Wait()
	unix.Close(peer)
	o.release()
}

// release frees what the pump worked with.
func (o *local) release() {
	unix.Close(o.ring)
	_ = unix.Munmap(o.mem)
}

// plugIn answers the Hello. peer is the adapter's end of the bell, which is kept open so that the pump's
// end never breaks.
func (o *local) plugIn(s *outlets) (peer int, err error) {
	if err := o.conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return -1, err
	}
	b := make([]byte, cable.MaxMessage+1)
	n, err := o.conn.Read(b)
	if err != nil {
		return -1, err
	}
	if o.hello, err = cable.ParseHello(b[:n]); err != nil {
		return -1, err
	}
	memory, mem, err := cable.NewMemory()
	if err != nil {
		return -1, err
	}
	defer unix.Close(memory)
	bells, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = unix.Munmap(mem)
		return -1, fmt.Errorf("bell: %w", err)
	}
	o.mem, o.ring = mem, bells[0]
	o.in, o.out = cable.NewConsumer(mem, true), cable.NewProducer(mem, false, o.hello.VCRC)
	if o.port, err = o.rack.join(&o.hello, o.hello.Program, func() { o.news(s.pump) }); err == nil {
		err = o.welcome(s, memory, bells[1])
	}
	if err != nil {
		if o.port != nil {
			o.port.Close()
		}
		o.release()
		unix.Close(bells[1])
		return -1, err
	}
	return bells[1], nil
}

func (o *local) welcome(s *outlets, memory, bell int) error {
	node, port := o.port.where()
	w := cable.Welcome{Fabric: s.fabric, Node: node, Port: port}
	if _, _, err := o.conn.WriteMsgUnix(w.Append(nil), unix.UnixRights(memory, bell), nil); err != nil {
		return err
	}
	p := o.rack.stateOf(o.port)
	if _, err := o.conn.Write(p.Message()); err != nil {
		return err
	}
	return o.conn.SetDeadline(time.Time{})
}

// listen reads the adapter's messages until it has gone, or sends something invalid.
func (o *local) listen() {
	b := make([]byte, cable.MaxMessage+1)
	for {
		n, err := seqpacket.Read(o.conn, b)
		if err != nil || n == 0 {
			return
		}
		if o.port.heard(b[:n]) != nil {
			return
		}
	}
}

// news is called with the rack locked.
func (o *local) news(p *pump) {
	select {
	case o.changed <- struct{}{}:
	default:
	}
	p.news(&o.outlet)
}

// tellPort sends the adapter its port's state whenever it has changed. An adapter that does not read it is
// cut off.
func (o *local) tellPort() {
	seen := uint64(0)
	for range o.changed {
		now := o.port.Changes()
		if now == seen {
			continue
		}
		seen = now
		p := o.rack.stateOf(o.port)
		err := o.conn.SetWriteDeadline(time.Now().Add(tellTime))
		if err == nil {
			_, err = o.conn.Write(p.Message())
		}
		if err != nil && !errors.Is(err, io.EOF) {
			o.conn.Close()
		}
	}
}

// cut ends an outlet whose adapter broke the rules.
func (o *local) cut() {
	o.broken = true
	o.conn.Close()
}

func (o *local) turn(now clock.Time) (some bool) {
	if o.fromFabric(now) {
		some = true
	}
	if o.toFabric(now) {
		some = true
	}
	if o.out.Publish() {
		o.rings = true
	}
	if o.in.Publish() {
		o.rings = true
	}
	return some
}

func (o *local) finish(clock.Time) bool {
	if o.rings {
		o.rings = false
		cable.Ring(o.ring)
	}
	return true
}

func (o *local) bell() int { return o.ring }

// fits implements sink.
func (o *local) fits(clock.Time) bool { return o.room > 0 }

// put implements sink.
func (o *local) put(b []byte) {
	o.out.Put(b, nil, nil)
	o.room--
}

func (o *local) fromFabric(now clock.Time) bool {
	room, err := o.out.Room()
	if err != nil {
		o.cut()
		return false
	}
	if room == 0 && o.port.waiting() > 0 {
		if o.out.Wait() {
			return false // the adapter rings when it has taken some
		}
		return true
	}
	o.room = room
	return o.port.deliver(now, o) > 0
}

func (o *local) toFabric(now clock.Time) bool {
	n, err := o.in.Waiting()
	if err != nil {
		o.cut()
		return false
	}
	n = min(n, turnFrames)
	for i := range n {
		b, vcrc, err := o.in.Peek()
		if err != nil {
			o.cut()
			return false
		}
		if len(vcrc) > 0 && !cable.Right(b, vcrc) {
			o.port.corrupt()
			o.in.Take()
			continue
		}
		if !o.port.transmit(now, b) {
			o.blocked = true
			return i > 0
		}
		o.in.Take()
	}
	return n > 0
}

func (o *local) sleep() bool { return o.in.Sleep() }
