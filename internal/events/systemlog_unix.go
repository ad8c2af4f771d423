//go:build unix

package events

import (
	"net"
	"time"
)

// sendPatience limits the delay caused by a system log that accepts nothing.
const sendPatience = time.Second

// dialDatagram returns a function that sends a datagram to a socket, reconnecting if its owner was
// restarted; with nil it closes the connection.
func dialDatagram(path string) (func([]byte) error, error) {
	dial := func() (*net.UnixConn, error) {
		return net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	}
	c, err := dial()
	if err != nil {
		return nil, err
	}
	return func(b []byte) error {
		if b == nil {
			return c.Close()
		}
		_ = c.SetWriteDeadline(time.Now().Add(sendPatience))
		_, err := c.Write(b)
		if err == nil {
			return nil
		}
		again, dialErr := dial()
		if dialErr != nil {
			return err
		}
		_ = c.Close()
		c = again
		_ = c.SetWriteDeadline(time.Now().Add(sendPatience))
		_, err = c.Write(b)
		return err
	}, nil
}
