package scale

import "testing"

// conversation is mixed traffic between two workers.
type conversation struct {
	t    testing.TB
	done chan struct{} // closed at its end
	asked
	served int
}

// converse starts a conversation: the client asks, and the server answers until the last message.
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

// ended reports whether the conversation has ended.
func (c *conversation) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// end waits until the conversation ends and returns what was done. Every message sent must have arrived.
func (c *conversation) end() asked {
	c.t.Helper()
	<-c.done
	if c.Messages != c.served {
		c.t.Errorf("%d messages were sent and %d came", c.Messages, c.served)
	}
	return c.asked
}
