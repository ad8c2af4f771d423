package rdmanet_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

// A reader of an idle connection learns that the peer's host has vanished: by default after 15 s and the retries, like
// with net.TCPConn; sooner if it asks for it, and not at all if it switches probes off.
func TestKeepAliveFindsAVanishedHost(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(c *rdmanet.Conn) error
		dies    bool
	}{
		{"period of 20 ms", func(c *rdmanet.Conn) error { return c.SetKeepAlivePeriod(20 * time.Millisecond) }, true},
		{"negative period: as before", func(c *rdmanet.Conn) error {
			return errors.Join(c.SetKeepAlivePeriod(20*time.Millisecond), c.SetKeepAlivePeriod(-1))
		}, true},
		{"default of 15 s", func(c *rdmanet.Conn) error { return c.SetKeepAlivePeriod(0) }, false},
		{"off", func(c *rdmanet.Conn) error {
			return errors.Join(c.SetKeepAlivePeriod(20*time.Millisecond), c.SetKeepAlive(false))
		}, false},
		{"off and on again", func(c *rdmanet.Conn) error {
			return errors.Join(c.SetKeepAlive(false), c.SetKeepAlivePeriod(20*time.Millisecond), c.SetKeepAlive(true))
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, vanish := toVanish(t)
			if err := test.prepare(c); err != nil {
				t.Fatal(err)
			}
			vanish()
			began := time.Now()
			limit := 8 * time.Second // longer than those take that find it, as a rule
			if test.dies {
				limit = await.Limit
			}
			if err := c.SetReadDeadline(began.Add(limit)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Read(make([]byte, 1))
			if gone := errors.Is(err, syscall.ETIMEDOUT); gone != test.dies {
				t.Errorf("read: %v after %v, want ETIMEDOUT: %v", err, time.Since(began), test.dies)
			}
		})
	}
}

// toVanish returns an idle connection, and a function after which nothing reaches its peer or comes from there.
func toVanish(t *testing.T) (c *rdmanet.Conn, vanish func()) {
	addrs := testbed.Addrs()
	socket, driver := testbed.Driver(t, addrs)
	b := &testbed.Bed{Mode: verbs.Attached, Addrs: addrs}
	for _, host := range []**verbs.Host{&b.Server, &b.Client} {
		h, err := verbs.Attach(testbed.Context(t), socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		*host = h
	}
	c, peer := connected(t, newNetwork(t, b, rdmanet.Buffers{}))
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c, func() {
		lost, err := impair.Impairment{}.Parse("loss=100%")
		for n := range addrs {
			err = errors.Join(err, driver.SetImpairment(uint32(n), lost))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
