package cable

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/seqpacket"
	"github.com/softvpi/softvpi/wire/ib"
	"golang.org/x/sys/unix"
)

// helloTime is how long the answer to a Hello may take.
const helloTime = 5 * time.Second

// local is a session with a fabric on this host.
type local struct {
	conn *net.UnixConn
	mem  []byte
	bell int
	out  *Producer
	in   *Consumer

	armed, waits bool // the other side is to ring for a frame, for room
	owed         bool // the bell was rung and not read yet
	once         sync.Once
	fabric       [16]byte
	damaged      uint64
	buffers      [maxReceived]*[MaxFrame]byte
}

// maxReceived is how many frames one call of receive returns.
const maxReceived = 128

// dialLocal plugs in at the fabric's socket.
func dialLocal(cfg *Config) (session, State, error) {
	if err := paths.Own(cfg.Socket); err != nil {
		return nil, State{}, err
	}
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: cfg.Socket})
	if err != nil {
		return nil, State{}, err
	}
	s := &local{conn: conn, bell: -1}
	first, err := s.plugIn(cfg)
	if err != nil {
		s.close()
		return nil, State{}, err
	}
	return s, first, nil
}

func (s *local) plugIn(cfg *Config) (first State, err error) {
	if err := s.conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return first, err
	}
	if _, err := s.conn.Write(cfg.Hello.Append(nil)); err != nil {
		return first, err
	}
	b, oob := make([]byte, MaxMessage+1), make([]byte, 128)
	n, oobn, err := seqpacket.ReadMsg(s.conn, b, oob)
	if err != nil {
		return first, err
	}
	if n == 0 {
		return first, io.ErrUnexpectedEOF
	}
	fds, err := rights(oob[:oobn])
	if err != nil {
		return first, err
	}
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	w, err := parseWelcome(b[:n])
	if err != nil {
		return first, err
	}
	if len(fds) != 2 {
		return first, &messageError{fmt.Sprintf("welcome has %d descriptors, want 2", len(fds))}
	}
	s.fabric = w.Fabric
	if s.mem, err = mapMemory(fds[0]); err != nil {
		return first, err
	}
	s.bell, fds = fds[1], fds[:1]
	s.out, s.in = NewProducer(s.mem, true, cfg.VCRC), NewConsumer(s.mem, false)
	if n, err = seqpacket.Read(s.conn, b); err != nil {
		return first, err
	}
	if first, err = parseState(b[:n]); err != nil {
		return first, err
	}
	first.Port.Fabric = s.fabric
	s.in.Sleep()
	s.armed = true
	return first, s.conn.SetDeadline(time.Time{})
}

// rights returns the descriptors that came with a message.
func rights(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("descriptors: %w", err)
	}
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, nil
}

// mapMemory maps the memory of a cable, which must be sealed against shrinking.
func mapMemory(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	if st.Size != MemoryLen {
		return nil, &messageError{fmt.Sprintf("shared memory has %d bytes, want %d", st.Size, MemoryLen)}
	}
	if seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, &messageError{"shared memory may shrink"}
	}
	mem, err := unix.Mmap(fd, 0, MemoryLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	return mem, nil
}

// NewMemory creates the memory of a cable and maps it. The caller closes the descriptor and unmaps the
// memory.
func NewMemory() (fd int, mem []byte, err error) {
	fd, err = unix.MemfdCreate("softvpi-cable", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, nil, fmt.Errorf("shared memory: %w", err)
	}
	if err = unix.Ftruncate(fd, MemoryLen); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		mem, err = unix.Mmap(fd, 0, MemoryLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fmt.Errorf("shared memory: %w", err)
	}
	return fd, mem, nil
}

// Ring rings the bell at the other end of a socket. It never blocks.
func Ring(bell int) { _ = unix.Send(bell, []byte{0}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) }

// Quiet reads what the bell has rung, and reports whether it had.
func Quiet(bell int) bool {
	var b [256]byte
	n, _, err := unix.Recvfrom(bell, b[:], unix.MSG_DONTWAIT)
	return err == nil && n > 0
}

func (s *local) send(frames []frame.Out) (int, error) {
	s.note()
	room, err := s.out.Room()
	if err != nil {
		return 0, err
	}
	n := 0
	for n < len(frames) {
		if room == 0 {
			if room, err = s.out.Room(); err != nil {
				return 0, err
			}
			if room == 0 {
				if s.waits = s.out.Wait(); s.waits {
					break
				}
				continue
			}
		}
		o := &frames[n]
		if n++; o.Len() > MaxFrame {
			continue // no port accepts it
		}
		s.out.Put(o.Head[o.HeadStart:o.HeadEnd], o.Payload, o.Tail[:o.TailLen])
		room--
	}
	if s.out.Publish() {
		Ring(s.bell)
	}
	return n, nil
}

// note notices whether the bell has been rung, but leaves reading it to receive: a sender need not look at
// what has arrived, and would take the signal from whoever sleeps until the bell rings.
func (s *local) note() {
	if s.armed && !s.in.sleeps() {
		s.armed, s.owed = false, true
	}
	if s.waits && !s.out.waits() {
		s.waits, s.owed = false, true
	}
}

// receive copies frames before it checks them: the other side can write to the memory.
func (s *local) receive(in []frame.In) (n int, err error) {
	for most := min(len(in), len(s.buffers)); n < most; {
		if s.buffers[n] == nil {
			s.buffers[n] = new([MaxFrame]byte)
		}
		b := s.buffers[n][:]
		length, err := s.next(b)
		if err != nil {
			return n, err
		}
		if length == 0 {
			break
		}
		if length > 0 {
			in[n] = frame.In{Data: b[:length:length], Raw: true}
			n++
		}
	}
	if s.in.Publish() {
		Ring(s.bell)
	}
	return n, nil
}

func (s *local) wrong() uint64 {
	n := s.damaged
	s.damaged = 0
	return n
}

// next copies the next frame and returns its length; 0: there is none, and the bell will ring for one; -1:
// it was damaged.
func (s *local) next(b []byte) (int, error) {
	for {
		n, err := s.in.Waiting()
		if err != nil {
			return 0, err
		}
		if n > 0 {
			break
		}
		s.note()
		if s.owed && Quiet(s.bell) {
			s.owed = false
		}
		if !s.armed {
			s.armed = s.in.Sleep()
		}
		if s.armed && s.in.sleeps() { // not rung while the bell was being read
			return 0, nil
		}
	}
	f, vcrc, err := s.in.Peek()
	if err != nil {
		return 0, err
	}
	n := copy(b, f)
	wrong := n < ib.LRHLen || len(vcrc) > 0 && !Right(b[:n], vcrc)
	s.in.Take()
	if wrong {
		s.damaged++
		return -1, nil
	}
	return n, nil
}

func (s *local) control(state func(State)) error {
	b := make([]byte, MaxMessage+1)
	for {
		n, err := seqpacket.Read(s.conn, b)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.EOF
		}
		p, err := parseState(b[:n])
		if err != nil {
			return err
		}
		p.Port.Fabric = s.fabric
		state(p)
	}
}

// tell sends a message unless that would block: a fabric that does not read its messages loses them. nil ends the session.
func (s *local) tell(b []byte) {
	if b == nil {
		_ = s.conn.SetReadDeadline(time.Unix(1, 0))
		_ = s.conn.CloseWrite()
		return
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return
	}
	// Not by a deadline: one that is near may be over before the first try, where the processor is taken away in between.
	_ = raw.Write(func(fd uintptr) bool {
		_, _ = unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return true
	})
}

func (s *local) descriptor() int { return s.bell }

func (s *local) close() {
	s.once.Do(func() {
		s.conn.Close()
		if s.bell >= 0 {
			unix.Close(s.bell)
		}
		if s.mem != nil {
			_ = unix.Munmap(s.mem)
		}
	})
}
