package server_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// kills returns how many programs TestKill kills; SOFTVPI_TEST_KILLS sets the number, 1000 for the full run.
func kills(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("SOFTVPI_TEST_KILLS"))
	if err != nil {
		n = 60
	}
	return n
}

// TestKill: a program that is killed leaves nothing in the driver: no session, descriptor, mapping or goroutine.
func TestKill(t *testing.T) {
	systemtest.Mark(t)
	for _, path := range []string{"process_vm", "copier"} {
		t.Run(path, func(t *testing.T) {
			h := &fake.Host{}
			_, socket := fake.Serve(t, h, server.Config{})
			killOne(t, socket, path) // so that what is made once exists from now on
			await.Eventually(t, "first torn down", func() bool { return h.Count() == 0 })
			await.Eventually(t, "first unmapped", func() bool { return mappings(t) == 0 })
			openFDs, goroutines := fds(t), runtime.NumGoroutine()

			var wg sync.WaitGroup
			todo := make(chan struct{})
			for range 4 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range todo {
						killOne(t, socket, path)
					}
				}()
			}
			for range kills(t) / 2 {
				todo <- struct{}{}
			}
			close(todo)
			wg.Wait()

			await.Eventually(t, "all torn down", func() bool { return h.Count() == 0 })
			await.Eventually(t, "all unmapped", func() bool { return mappings(t) == 0 })
			await.Eventually(t, "descriptors closed", func() bool { return fds(t) <= openFDs })
			await.Eventually(t, "goroutines ended", func() bool { return runtime.NumGoroutine() <= goroutines })
		})
	}
}

// killOne starts a program and kills it when it is attached and at work.
func killOne(t *testing.T, socket, path string) {
	systemtest.Required(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+socket, client.PathVariable+"="+path, "GOMAXPROCS=2")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "attached\n" {
		t.Errorf("the program said %q (%v), want \"attached\"", line, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestDepartures: the driver learns how a program ended: in good order, killed, or disconnected for breaking the
// protocol.
func TestDepartures(t *testing.T) {
	systemtest.Mark(t)
	gone := make(chan server.Departure, 1)
	_, socket := fake.Serve(t, &fake.Host{}, server.Config{Ended: func(d server.Departure) { gone <- d }})
	c, err := client.Dial(ctx, socket, client.Options{Name: "orderly"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if d := <-gone; d.Cause != nil || d.Name != "orderly" || d.PID != os.Getpid() || d.UID != os.Getuid() {
		t.Errorf("after Close: %+v, want no cause, and this process", d)
	}
	killOne(t, socket, "process_vm")
	if d := <-gone; !errors.Is(d.Cause, io.EOF) || d.PID == os.Getpid() {
		t.Errorf("after a kill: %+v, want the end of the stream, and another process", d)
	}
	dialRaw(t, socket).hello().put(proto.AppendFrame(nil, 9999, 0, 1, nil))
	if d := <-gone; d.Cause == nil || errors.Is(d.Cause, io.EOF) {
		t.Errorf("after a bad frame: %+v, want its error as cause", d)
	}
}

// TestDepartureWithAnswersUnderWay: a program that detaches while answers to it are being written counts as detached
// in good order.
func TestDepartureWithAnswersUnderWay(t *testing.T) {
	gone := make(chan server.Departure, 1)
	_, socket := fake.Serve(t, &fake.Host{}, server.Config{Ended: func(d server.Departure) { gone <- d }})
	for n := range 300 {
		c, err := client.Dial(ctx, socket, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for err := error(nil); err == nil; {
					_, err = c.AllocPD(ctx, 0)
				}
			})
		}
		time.Sleep(time.Duration(n%10) * 100 * time.Microsecond)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		callers.Wait()
		if d := <-gone; d.Cause != nil {
			t.Fatalf("program %d: cause %v, want none", n, d.Cause)
		}
	}
}

// TestDetach: a program that detaches leaves nothing in the driver either.
func TestDetach(t *testing.T) {
	h := &fake.Host{}
	_, socket := fake.Serve(t, h, server.Config{})
	once := func() {
		c, err := client.Dial(ctx, socket, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.AllocSegment(ctx, 4096); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
	}
	once()
	await.Eventually(t, "torn down", func() bool { return h.Count() == 0 && mappings(t) == 0 })
	before := fds(t)
	for range 100 {
		once()
	}
	await.Eventually(t, "torn down", func() bool { return h.Count() == 0 && mappings(t) == 0 && fds(t) <= before })
}

// TestConnectAndGo: programs that connect and leave at once, before or after hello, leave nothing.
func TestConnectAndGo(t *testing.T) {
	h := &fake.Host{}
	srv, socket := fake.Serve(t, h, server.Config{})
	before := fds(t)
	for i := range 100 {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, _ = c.Write(proto.AppendFrame(nil, proto.OpHello, 0, 1, proto.Encode(goodHello())))
		}
		c.Close()
	}
	await.Eventually(t, "all gone", func() bool { return srv.Clients() == 0 && h.Count() == 0 && fds(t) <= before })
}
