package remote

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"sync"
)

// Process is a program on the far side.
type Process struct {
	conn net.Conn
	out  func([]byte)

	writing sync.Mutex
	done    chan struct{}
	status  int
	err     error
}

// Start runs a program over conn, which it takes over. What the program prints
// goes to out, in pieces, from one goroutine.
func Start(conn net.Conn, out func([]byte), args ...string) (*Process, error) {
	line, err := json.Marshal(Command{Args: args})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("remote: start %s: %w", args[0], err)
	}
	p := &Process{conn: conn, out: out, done: make(chan struct{})}
	go p.read()
	return p, nil
}

func (p *Process) read() {
	defer close(p.done)
	defer p.conn.Close()
	for {
		kind, data, err := readFrame(p.conn)
		switch {
		case err != nil:
			p.status, p.err = -1, fmt.Errorf("remote: the machine is gone: %w", err)
			return
		case kind == frameOutput:
			p.out(data)
		case kind == frameExit && len(data) == 4:
			p.status = int(int32(binary.LittleEndian.Uint32(data)))
			return
		}
	}
}

// Write writes to the program's standard input.
func (p *Process) Write(b []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if err := writeFrame(p.conn, frameInput, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Kill ends the program.
func (p *Process) Kill() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return writeFrame(p.conn, frameKill, nil)
}

// Done is closed when the program has ended or its machine is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the program and returns its exit status.
func (p *Process) Wait() (int, error) {
	<-p.done
	return p.status, p.err
}
