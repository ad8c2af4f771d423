package umad

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// firstID is above all process IDs, which other clients use as their IDs.
const firstID = 1 << 23

// dialIbsimLocal connects to a server on this machine over abstract sockets. Their names end in a zero
// byte.
func dialIbsimLocal(o IbsimOptions, c *ibsim) (Device, error) {
	base := "@" + ibsimBase(o) + ":"
	id, control, data, err := bindIbsim(base)
	if err != nil {
		return Device{}, err
	}
	c.control = control
	if err := c.attach(o, id); err != nil {
		data.Close()
		return Device{}, err
	}
	c.data = data
	if err := connectTo(data, fmt.Sprintf("%sout%d\x00", base, c.client)); err != nil {
		return Device{}, err
	}
	return c.describe()
}

// bindIbsim binds the sockets with an ID that no other client has.
func bindIbsim(base string) (id uint32, control, data *net.UnixConn, err error) {
	server := &net.UnixAddr{Name: base + "ctl\x00", Net: "unixgram"}
	for range 16 {
		id = firstID + rand.Uint32N(1<<30)
		own := func(kind string) *net.UnixAddr {
			return &net.UnixAddr{Name: fmt.Sprintf("%s%s%d\x00", base, kind, id), Net: "unixgram"}
		}
		control, err = net.DialUnix("unixgram", own("ctl"), server)
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, nil, nil, err
		}
		data, err = net.ListenUnixgram("unixgram", own("in"))
		if err == nil {
			return id, control, data, nil
		}
		control.Close()
	}
	return 0, nil, nil, err
}

// connectTo connects a bound socket to a server's, so that datagrams of others are refused.
func connectTo(c *net.UnixConn, name string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = os.NewSyscallError("connect", unix.Connect(int(fd), &unix.SockaddrUnix{Name: name}))
	})
	return errors.Join(err, failed)
}
