package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/race"
)

// mostMemory is how much memory a driver may use with a thousand clients, in kB. The race detector takes more for itself.
const mostMemory = 600 << 10

// A thousand concurrent clients read everything and change some of it, a hundred send requests and never read the
// answers, and some send requests of 10 MB. Every valid request is answered, at once or when its sender asks again as it was told, the
// driver's memory stays bounded, and the driver keeps running.
func TestThousandClients(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right", Generation: "mlx4"})
	p := start(t, cfg)
	client := api.NewClient(cfg.Socket)
	large := registry.Value{Name: "large", Type: registry.Binary, Data: make([]byte, 256<<10)}
	c := changes(t, 1)
	if _, err := client.ChangeRegistry(t.Context(), append(c, registry.Change{Kind: registry.SetValue, Key: c[0].Key, Value: large}),
		false); err != nil {
		t.Fatal(err)
	}
	for range 100 { // more answers than a socket holds, and nobody reads them
		say(t, dial(t, cfg.Socket), "GET /registry/keys?path=HKLM&recurse=true", 0)
	}
	asked := []string{
		"GET /status", "GET /metrics", "GET /counters", "GET /counters/sets", "GET /events", "GET /connections",
		"GET /adapters/left/settings", "GET /registry/keys?path=HKLM", "GET /openapi.json", "PUT /adapters/left/settings/RoceMaxFrameSize",
	}
	var wg sync.WaitGroup
	conns := make([]net.Conn, 1000)
	for i := range conns {
		conns[i] = dial(t, cfg.Socket)
	}
	for i, conn := range conns {
		wg.Go(func() {
			what := asked[i%len(asked)]
			body := ""
			if strings.HasPrefix(what, "PUT") {
				body = `{"value": "1024"}`
			}
			status, err := ask(conn, what, strings.NewReader(body), len(body))
			for end := time.Now().Add(await.Limit); err == nil && status == http.StatusServiceUnavailable && time.Now().Before(end); {
				time.Sleep(time.Second) // Retry-After: on a slow machine not all have had their turn in time
				status, err = ask(dial(t, cfg.Socket), what, strings.NewReader(body), len(body))
			}
			if err != nil || status/100 != 2 {
				t.Errorf("client %d, %s: %d, %v", i, what, status, err)
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			const size = 10 << 20
			body := io.MultiReader(strings.NewReader(`{"changes": [`), io.LimitReader(blanks{}, size))
			// The driver may close the connection before it has read everything.
			if status, err := ask(dial(t, cfg.Socket), "POST /registry/changes", body, size+13); err == nil &&
				status != http.StatusRequestEntityTooLarge {
				t.Errorf("10 MB: %d", status)
			}
		})
	}
	wg.Wait()
	s, err := client.Status(t.Context())
	if err != nil || !s.Adapters[0].Up || !s.Adapters[1].Up {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
	if kB := memory(t, p.cmd.Process.Pid); kB > mostMemory && !race.Detector {
		t.Errorf("the driver took %d kB, want at most %d", kB, mostMemory)
	}
	p.stop()
}

// blanks is an endless stream of spaces.
type blanks struct{}

func (blanks) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func dial(t *testing.T, socket string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", paths.Management(socket))
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func say(t *testing.T, c net.Conn, what string, body int) {
	t.Helper()
	if c == nil {
		return
	}
	if _, err := io.WriteString(c, head(what, body)); err != nil {
		t.Error(err)
	}
}

func head(what string, body int) string {
	return fmt.Sprintf("%s HTTP/1.1\r\nHost: driver\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", what, body)
}

// ask sends a request on a connection and reads the answer's status.
func ask(c net.Conn, what string, body io.Reader, size int) (status int, err error) {
	if c == nil {
		return 0, errors.New("not connected")
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, io.MultiReader(strings.NewReader(head(what, size)), body))
		sent <- err
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, errors.Join(err, <-sent)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

var peak = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// memory returns the peak memory of a process, in kB.
func memory(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := peak.FindSubmatch(b)
	if m == nil {
		t.Fatal("no VmHWM in the status of the process")
	}
	kB, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the driver had %d kB at most", kB)
	return kB
}
