package rdmanet_test

import (
	"errors"
	"sync"
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
// with net.TCPConn; sooner if it asks for it, and not at all if it switches probes off. Those that do not learn it soon are
// looked at for a second longer than it takes the others.
func TestKeepAliveFindsAVanishedHost(t *testing.T) {
	const longest = 8 * time.Second // that those are looked at which must not learn it: less than the default and the retries
	var reads, dying sync.WaitGroup
	var mu sync.Mutex
	var took time.Duration // by the one of those that learn it that takes longest
	others := map[*rdmanet.Conn]time.Time{}
	defer reads.Wait()
	for _, test := range []struct {
		name    string
		prepare func(c *rdmanet.Conn) error
		dies    bool
	}{
		{"period of 20 ms", func(c *rdmanet.Conn) error { return c.SetKeepAlivePeriod(20 * time.Millisecond) }, true},
		{"negative period: as before", func(c *rdmanet.Conn) error {
			return errors.Join(c.SetKeepAlivePeriod(20*time.Millisecond), c.SetKeepAlivePeriod(-1))
		}, true},
		{"off and on again", func(c *rdmanet.Conn) error {
			return errors.Join(c.SetKeepAlive(false), c.SetKeepAlivePeriod(20*time.Millisecond), c.SetKeepAlive(true))
		}, true},
		{"off", func(c *rdmanet.Conn) error {
			return errors.Join(c.SetKeepAlivePeriod(20*time.Millisecond), c.SetKeepAlive(false))
		}, false},
		{"default of 15 s", func(c *rdmanet.Conn) error { return c.SetKeepAlivePeriod(0) }, false},
	} {
		c, vanish := toVanish(t)
		if err := test.prepare(c); err != nil {
			t.Fatal(err)
		}
		vanish()
		began, limit := time.Now(), longest
		if test.dies {
			limit = await.Limit
			dying.Add(1)
		} else {
			others[c] = began
		}
		if err := c.SetReadDeadline(began.Add(limit)); err != nil {
			t.Fatal(err)
		}
		reads.Go(func() {
			_, err := c.Read(make([]byte, 1))
			if gone := errors.Is(err, syscall.ETIMEDOUT); gone != test.dies {
				t.Errorf("%s: read: %v after %v, want ETIMEDOUT: %v", test.name, err, time.Since(began), test.dies)
			}
			if test.dies {
				mu.Lock()
				took = max(took, time.Since(began))
				mu.Unlock()
				dying.Done()
			}
		})
	}
	dying.Wait()
	for c, began := range others {
		if d := took + time.Second; d < longest {
			if err := c.SetReadDeadline(began.Add(d)); err != nil {
				t.Error(err)
			}
		}
	}
}

// toVanish returns an idle connection, and a function after which nothing reaches its peer or comes from there until the test ends: then
// it does again, so that the connection need not wait for all retries to close.
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
	lose := func(what string) {
		i, err := impair.Impairment{}.Parse(what)
		for n := range addrs {
			err = errors.Join(err, driver.SetImpairment(uint32(n), i))
		}
		if err != nil {
			t.Error(err)
		}
	}
	return c, func() {
		lose("loss=100%")
		t.Cleanup(func() { lose("loss=0%") })
	}
}
