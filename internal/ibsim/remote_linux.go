package ibsim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// maxCommand limits the text of a command from another process.
const maxCommand = 4096

// The first byte of an answer says what the text after it is.
const (
	commandDone    = 0
	commandRefused = 1
)

// ErrNoServer says that no fabric is served under a name on this machine.
var ErrNoServer = errors.New("no fabric is served under this name")

// Do makes the server of that name on this machine execute a command, and returns its output. A refused
// command is a *CommandError; if there is no such server the error is ErrNoServer.
func Do(name, command string) (string, error) {
	if len(command) > maxCommand {
		return "", refuse("command has %d bytes; allowed: up to %d", len(command), maxCommand)
	}
	l := &localListener{base: name}
	c, err := net.DialUnix("unixgram", l.addr(fmt.Sprintf("do-%d", rand.Uint64())), l.addr("do"))
	if errors.Is(err, unix.ECONNREFUSED) {
		return "", ErrNoServer
	}
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte(command)); err != nil {
		return "", err
	}
	b := make([]byte, 1<<17)
	n, err := c.Read(b)
	switch {
	case err != nil:
		return "", err
	case n == 0 || b[0] > commandRefused:
		return "", errors.New("the answer is not that of a fabric")
	case b[0] == commandRefused:
		return "", &CommandError{Problem: string(b[1:n])}
	}
	return string(b[1:n]), nil
}

// commands executes what other processes of the machine request by Do, until the listener is closed.
func (l *localListener) commands(s *Server) {
	b := make([]byte, maxCommand+1)
	for {
		n, from, err := l.do.ReadFromUnix(b)
		if err != nil {
			return
		}
		text, err := s.Command(string(b[:n]))
		kind := byte(commandDone)
		if err != nil {
			kind, text = commandRefused, err.Error()
		}
		if from != nil {
			_, _ = l.do.WriteToUnix(append([]byte{kind}, text[:min(len(text), 1<<16)]...),
				&net.UnixAddr{Net: from.Net, Name: from.Name + "\x00"})
		}
	}
}
