package remote

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
)

// Command is what to run.
type Command struct {
	Args []string `json:"args"` // the program and its arguments
}

// Serve runs the one program that conn asks for and returns when it has ended.
// The program is killed when the stream ends first.
func Serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return
	}
	out := &output{conn: conn}
	var c Command
	if err := json.Unmarshal(line, &c); err != nil || len(c.Args) == 0 {
		out.exit(fmt.Sprintf("remote: bad command %q\n", line), 125)
		return
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		out.exit(fmt.Sprintf("remote: %v\n", err), 125)
		return
	}
	go func() {
		for {
			kind, data, err := readFrame(r)
			switch {
			case err != nil || kind == frameKill:
				_ = cmd.Process.Kill()
				return
			case kind == frameInput && len(data) == 0:
				_ = stdin.Close()
			case kind == frameInput:
				_, _ = stdin.Write(data)
			}
		}
	}()
	status := 0
	if err := cmd.Wait(); err != nil {
		status = 125
		if e := new(exec.ExitError); errors.As(err, &e) {
			status = e.ExitCode()
		}
	}
	out.exit("", status)
}

// output makes frames of what a program prints.
type output struct {
	mu   sync.Mutex
	conn net.Conn
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxFrameBytes)
		if err := writeFrame(o.conn, frameOutput, rest[:n]); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

func (o *output) exit(message string, status int) {
	_, _ = o.Write([]byte(message))
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = writeFrame(o.conn, frameExit, binary.LittleEndian.AppendUint32(nil, uint32(int32(status))))
}
