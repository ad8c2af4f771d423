package scale

import "testing"

// conversation is two workers that exchange mixed traffic.
type conversation struct {
	t    testing.TB
	done chan struct{} // closed at its end
	asked
	served int
}

// converse begins it: the client asks, the server answers until the last message.
func converse(t testing.TB, server, client *worker, a askArgs) *conversation {
	c := &conversation{t: t, done: make(chan struct{})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.try("serve", nil, &c.served); err != nil {
			t.Errorf("server: %v", err)
		}
	}()
	go func() {
		defer close(c.done)
		if err := client.try("ask", a, &c.asked); err != nil {
			t.Errorf("client: %v", err)
		}
		<-served
	}()
	return c
}

// end waits for it, and returns what was done: every message that was sent came.
func (c *conversation) end() asked {
	c.t.Helper()
	<-c.done
	if c.Messages != c.served {
		c.t.Errorf("%d messages were sent and %d came", c.Messages, c.served)
	}
	return c.asked
}
