package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestRequestTooLarge: a request of 10 MB is refused, and the server continues.
func TestRequestTooLarge(t *testing.T) {
	b := serve(t, Config{})
	big := strings.Repeat("x", 10<<20)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/registry/import", big},
		{"POST", "/registry/changes", `{"changes": [], "x": "` + big + `"}`},
		{"PUT", "/adapters/a/state", `{"enable": true, "x": "` + big[:128<<10] + `"}`},
	} {
		status := 0
		r, err := http.NewRequest(c.method, "http://driver"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := b.plain.Do(r)
		if err == nil {
			status = resp.StatusCode
			resp.Body.Close()
		}
		if status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s %s: %d, %v", c.method, c.path, status, err)
		}
	}
	if _, err := b.client.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestThousandClients: a thousand clients connected at a time are all answered.
func TestThousandClients(t *testing.T) {
	b := serve(t, Config{})
	const n = 1000
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("unix", b.socket)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		defer c.Close()
		conns[i] = c
	}
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i, c := range conns {
		wg.Go(func() {
			method, path := "GET /status", ""
			if i%4 == 0 {
				method = "POST /adapters/a/restart"
			}
			if _, err := fmt.Fprintf(c, "%s%s HTTP/1.1\r\nHost: driver\r\n\r\n", method, path); err != nil {
				errs <- err
				return
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				errs <- err
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode/100 != 2 {
				errs <- fmt.Errorf("client %d: %s", i, resp.Status)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// TestPlaces: a client beyond the limit waits, and is served when another one leaves.
func TestPlaces(t *testing.T) {
	b := serve(t, Config{Limits: Limits{Clients: 1}})
	first, err := net.Dial("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(first, "GET /status HTTP/1.1\r\nHost: driver\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil { // now it has the place
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		_, err := b.client.Status(context.Background())
		served <- err
	}()
	select {
	case err := <-served:
		t.Errorf("a second client was served beside the only one allowed: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestSlowClientsAreDropped: readers that take nothing and clients that do not finish their request are disconnected;
// others do not notice.
func TestSlowClientsAreDropped(t *testing.T) {
	b := serve(t, Config{Limits: Limits{Header: 200 * time.Millisecond, Write: 200 * time.Millisecond}})
	var changes []registry.Change
	for i := range 16 {
		v := registry.Value{Name: fmt.Sprint(i), Type: registry.Binary, Data: make([]byte, 1<<20)}
		changes = append(changes, registry.Change{Kind: registry.SetValue, Key: roce(t), Value: v})
	}
	if err := b.reg.Apply(changes...); err != nil {
		t.Fatal(err)
	}
	// An answer of more than 20 MB, far more than a socket holds.
	slow, err := net.Dial("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /registry/keys?path=HKLM&recurse=true HTTP/1.1\r\nHost: driver\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	halfway, err := net.Dial("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer halfway.Close()
	if _, err := io.WriteString(halfway, "GET /status HTTP/1.1\r\nHost:"); err != nil {
		t.Fatal(err)
	}
	var answered error
	if !await.Until(func() bool { // a client that has had no processor for as long counts as slow too
		_, answered = b.client.Status(t.Context())
		return answered == nil
	}) {
		t.Error(answered)
	}
	if _, err := io.ReadAll(halfway); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the client without a header: %v", err)
	} // it returns: the server has closed the connection
	waitClosed(t, b.server)
	resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		return // disconnected before anything was taken
	}
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("a reader that took nothing got all %d bytes", n)
	}
}

// waitClosed waits until no connection is open.
func waitClosed(t *testing.T, s *Server) {
	t.Helper()
	await.Eventually(t, "no connection is open", func() bool { return s.open.Load() == 0 })
}

// TestConcurrentChanges: changes by many clients at a time are made one after the other, each whole.
func TestConcurrentChanges(t *testing.T) {
	b := serve(t, Config{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 10 {
				var c []registry.Change
				for name := range 5 {
					c = append(c, registry.Change{Kind: registry.SetValue, Key: roce(t), Value: registry.DWord(fmt.Sprint(name),
						uint32(i))})
				}
				if _, err := b.client.ChangeRegistry(context.Background(), c, false); err != nil {
					t.Error(err)
				}
				if k, _ := b.reg.Key(roce(t)); len(k.Values) != 5 || !same(k.Values) {
					t.Errorf("half a change: %v", k.Values)
				}
			}
		})
	}
	wg.Wait()
}

func same(values []registry.Value) bool {
	for _, v := range values {
		if v.Show() != values[0].Show() {
			return false
		}
	}
	return true
}

// TestAnswersThatNobodyTakesAreBounded: the answers that clients do not take have a common limit. Beyond it large
// answers are refused for a while, small ones and changes are not, and what slow readers held is free again when they
// leave.
func TestAnswersThatNobodyTakesAreBounded(t *testing.T) {
	const limit, readers = 4 << 20, 40
	b := serve(t, Config{Limits: Limits{Answers: limit}})
	v := registry.Value{Name: "x", Type: registry.Binary, Data: make([]byte, 256<<10)} // in JSON more than three times that
	if err := b.reg.Apply(registry.Change{Kind: registry.SetValue, Key: roce(t), Value: v}); err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, readers)
	for i := range conns {
		c, err := net.Dial("unix", b.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[i] = c
		if _, err := io.WriteString(c, "GET /registry/keys?path=HKLM&recurse=true HTTP/1.1\r\nHost: driver\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for _, c := range conns {
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 4096), nil) // the header only
		if err != nil {
			t.Fatal(err)
		}
		if b.server.answers.bytes() > limit {
			t.Fatalf("%d bytes of answers are held, want at most %d", b.server.answers.bytes(), limit)
		}
		switch resp.StatusCode {
		case http.StatusServiceUnavailable:
			refused++
			if resp.Header.Get("Retry-After") == "" {
				t.Error("refused without Retry-After")
			}
		case http.StatusOK:
		default:
			t.Error(resp.Status)
		}
	}
	if most := limit / (3 * len(v.Data)); refused < readers-most || refused == readers {
		t.Errorf("%d of %d readers were refused, want some but not all: at least %d answers do not fit", refused, readers, readers-most)
	}
	if _, err := b.client.Status(t.Context()); err != nil {
		t.Errorf("a small answer beside large ones: %v", err)
	}
	if status, text := b.request(t, "GET", "/registry/keys?path=HKLM&recurse=true", ""); status != http.StatusServiceUnavailable {
		t.Errorf("%d %.200s", status, text)
	}
	if status, text := b.request(t, "POST", "/adapters/Ethernet%201/restart", ""); status/100 != 2 {
		t.Errorf("a change beside large answers: %d %s", status, text)
	}
	for _, c := range conns {
		c.Close()
	}
	if !await.Until(func() bool { return b.server.answers.bytes() == 0 }) {
		t.Fatalf("%d bytes of answers are held without readers", b.server.answers.bytes())
	}
	if status, _ := b.request(t, "GET", "/registry/keys?path=HKLM&recurse=true", ""); status != http.StatusOK {
		t.Errorf("after the slow readers have left: status %d, want 200", status)
	}
}

// bytes returns the size of the answers that are held.
func (a *answers) bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.underWay
}
