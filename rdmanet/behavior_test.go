package rdmanet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

func connected(t *testing.T, n *network) (dialed, accepted *rdmanet.Conn) {
	t.Helper()
	c1, c2, err := n.pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c1.Close(); c2.Close() })
	return c1.(*rdmanet.Conn), c2.(*rdmanet.Conn)
}

func TestBytesArriveOnceInOrder(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		for _, buffers := range []rdmanet.Buffers{{}, {Count: 2, Size: 256}, {Count: 5, Size: 4099}} {
			n := newNetwork(t, b, buffers)
			c1, c2 := connected(t, n)
			var wg sync.WaitGroup
			for i, dir := range [][2]*rdmanet.Conn{{c1, c2}, {c2, c1}} {
				seed := uint64(i)
				wg.Add(2)
				go func() { defer wg.Done(); sendStream(t, dir[0], seed) }()
				go func() { defer wg.Done(); checkStream(t, dir[1], seed) }()
			}
			wg.Wait()
		}
	})
}

const streamLength = 256 << 10

func stream(seed uint64) []byte {
	b := make([]byte, streamLength)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

// sendStream writes the stream in pieces of any size and closes its side.
func sendStream(t *testing.T, c *rdmanet.Conn, seed uint64) {
	rest := stream(seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for len(rest) > 0 {
		n, err := c.Write(rest[:min(len(rest), 1+r.IntN(40000))])
		if err != nil {
			t.Errorf("write: %v", err)
			return
		}
		rest = rest[n:]
	}
	if err := c.CloseWrite(); err != nil {
		t.Errorf("close write: %v", err)
	}
}

func checkStream(t *testing.T, c *rdmanet.Conn, seed uint64) {
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, stream(seed)) {
		t.Errorf("read %d bytes, %v, want the %d that were sent", len(got), err, streamLength)
	}
}

func TestHalfClose(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		c1, c2 := connected(t, newNetwork(t, b, rdmanet.Buffers{}))
		if _, err := c1.Write([]byte("question")); err != nil {
			t.Fatal(err)
		}
		if err := c1.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := c1.Write([]byte("more")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after CloseWrite: %v, want EPIPE", err)
		}
		if got, err := io.ReadAll(c2); string(got) != "question" || err != nil {
			t.Fatalf("read %q, %v", got, err)
		}
		if _, err := c2.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		if err := c2.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c1); string(got) != "answer" || err != nil {
			t.Fatalf("read %q, %v", got, err)
		}
	})
}

// Data that Write accepted is delivered even if the writer closes at once and the reader has not begun.
func TestCloseDelivers(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		c1, c2 := connected(t, newNetwork(t, b, rdmanet.Buffers{}))
		want := stream(7)[:100<<10]
		if _, err := c1.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := c1.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c2); !bytes.Equal(got, want) || err != nil {
			t.Fatalf("read %d bytes, %v, want %d", len(got), err, len(want))
		}
		if _, err := c1.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after Close: %v, want net.ErrClosed", err)
		}
	})
}

func TestWriteWaitsForTheReader(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		c1, c2 := connected(t, newNetwork(t, b, rdmanet.Buffers{Count: 4, Size: 1024}))
		write := func() (n int) {
			if err := c1.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			n, err := c1.Write(make([]byte, 1<<20))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("write: %v, want a deadline", err)
			}
			return n
		}
		// A writer that has no processor until its deadline takes less, but then the rest at another time, and never more.
		const want = 4 * (1024 - 8)
		sent := 0
		await.Until(func() bool { sent += write(); return sent >= want })
		if sent += write(); sent != want {
			t.Errorf("%d bytes were taken, want %d: what the peer has buffers for", sent, want)
		}
		if _, err := io.ReadFull(c2, make([]byte, sent)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPeerThatDiesResetsTheConnection(t *testing.T) {
	addrs := testbed.Addrs()
	b := &testbed.Bed{Mode: verbs.Embedded, Addrs: addrs}
	for i, host := range []**verbs.Host{&b.Server, &b.Client} {
		h, err := verbs.Embed(verbs.Config{Adapters: testbed.Adapters(addrs)[i : i+1]})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		*host = h
	}
	c1, c2 := connected(t, newNetwork(t, b, rdmanet.Buffers{}))
	if _, err := c1.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 10)
	if _, err := io.ReadFull(c2, got); err != nil || string(got) != "last words" {
		t.Fatalf("read %q, %v", got, err)
	}
	b.Client.Close()
	if _, err := c2.Read(got); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v, want ECONNRESET", err)
	}
	if _, err := c2.Write(got); err == nil {
		t.Error("write to a dead peer succeeds")
	}
}

func TestDialErrors(t *testing.T) {
	b := testbed.New(t, verbs.Embedded)
	n := newNetwork(t, b, rdmanet.Buffers{})
	ctx := testbed.Context(t)
	nobody := netip.AddrPortFrom(b.Addrs[0], 1).String()
	_, err := n.dialer.Dial(ctx, nobody)
	if !errors.Is(err, nd.ErrConnectionRefused) || !strings.Contains(err.Error(), nobody) {
		t.Errorf("dial: %v, want ND_CONNECTION_REFUSED that names %s", err, nobody)
	}
	for _, address := range []string{"", "127.0.0.1", "127.0.0.1:http_", "127.0.0.1:70000"} {
		if _, err := n.dialer.Dial(ctx, address); err == nil {
			t.Errorf("dial %q succeeds", address)
		}
	}
	if _, err := n.dialer.DialContext(ctx, "udp", nobody); err == nil {
		t.Error("dial of network udp succeeds")
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := n.dialer.Dial(canceled, n.listener.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("dial with a canceled context: %v", err)
	}
	for _, buffers := range []rdmanet.Buffers{{Count: 1}, {Count: -1}, {Size: 10}, {Size: 1 << 30}, {Count: 1 << 20}} {
		d := &rdmanet.Dialer{Adapter: n.dialer.Adapter, Buffers: buffers}
		if _, err := d.Dial(ctx, n.listener.Addr().String()); err == nil {
			t.Errorf("dial with %+v succeeds", buffers)
		}
	}
}

// A program that connects without speaking rdmanet is refused, and prevents nobody else from connecting.
func TestListenerRefusesStrangers(t *testing.T) {
	b := testbed.New(t, verbs.Embedded)
	n := newNetwork(t, b, rdmanet.Buffers{})
	a := n.dialer.Adapter
	cq, err := a.CreateCompletionQueue(4)
	if err != nil {
		t.Fatal(err)
	}
	defer cq.Close()
	qp, err := a.CreateQueuePair(nd.QueuePairConfig{ReceiveCompletionQueue: cq, InitiatorCompletionQueue: cq})
	if err != nil {
		t.Fatal(err)
	}
	defer qp.Close()
	c, err := a.CreateConnector()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	remote := netip.MustParseAddrPort(n.listener.Addr().String())
	err = c.Connect(testbed.Context(t), qp, remote, nd.ConnectParams{PrivateData: []byte("not rdmanet")})
	if !errors.Is(err, nd.ErrConnectionRefused) {
		t.Errorf("connect: %v, want ND_CONNECTION_REFUSED", err)
	}
	connected(t, n)
}
