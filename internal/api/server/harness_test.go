package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// fake is a driver without adapters: a registry, and the last request.
type fake struct {
	mu     sync.Mutex
	reg    *registry.Registry
	status api.Status
	last   any
	fail   error

	whole int // how often the status with all queue pairs was requested
}

func newFake() *fake {
	f := &fake{reg: registry.NewVolatile("test")}
	if _, err := f.reg.AddAdapter("Ethernet 1", catalogue.MLX5); err != nil {
		panic(err)
	}
	f.status = api.Status{Version: "test", Adapters: []api.AdapterStatus{{Name: "Ethernet 1"}, {Name: "Ethernet 2", Index: 1}},
		Programs: []api.ProgramStatus{}}
	return f
}

func (f *fake) did(q any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = q
	return f.fail
}

func (f *fake) Status() api.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole++
	return f.status
}

func (f *fake) Overview() api.Status {
	s := f.status
	s.Adapters = slices.Clone(s.Adapters)
	for i := range s.Adapters {
		s.Adapters[i].QPs = []api.QPStatus{}
	}
	return s
}

func (f *fake) SetAdapter(q api.AdapterRequest) error { return f.did(q) }

func (f *fake) RestartAdapter(name string) error { return f.did(name) }

func (f *fake) SleepAdapter(q api.SleepRequest) error { return f.did(q.Adapter) }

func (f *fake) SetLink(q api.LinkRequest) error { return f.did(q) }

func (f *fake) Registry() *registry.Registry { return f.reg }

func (f *fake) Settings(string) ([]api.Setting, error) {
	return []api.Setting{{Name: "roce_mode", Value: "2"}}, f.fail
}

func (f *fake) Set(adapter, key string, value *string) ([]registry.Notice, error) {
	return nil, f.did([]any{adapter, key, value})
}

func (f *fake) ChangeRegistry(c []registry.Change, unchecked bool) ([]registry.Notice, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var n []registry.Notice
	if !unchecked {
		var err error
		if n, err = f.reg.Check(c); err != nil {
			return nil, err
		}
	}
	return n, f.reg.Apply(c...)
}

func (f *fake) OpenCapture(api.CaptureRequest) (Capture, error) { return nil, errNoCapture }

func (f *fake) CaptureToFile(q api.CaptureRequest, path string) (api.CaptureStatus, error) {
	return api.CaptureStatus{ID: "1", Adapter: q.Adapter, File: path, Running: true}, f.did([]any{q, path})
}

func (f *fake) Captures() []api.CaptureStatus { return []api.CaptureStatus{} }

func (f *fake) EndCapture(_ context.Context, id string) (api.CaptureStatus, error) {
	return api.CaptureStatus{ID: id}, f.did(id)
}

func (f *fake) MakeLink() (api.Link, error) {
	return api.Link{URL: "http://127.0.0.1:1/"}, f.did("link")
}

func (f *fake) ClosePages() error { return f.did("close") }

var errNoCapture = api.Wrong("adapter", `"x"`, `"Ethernet 1"`)

// bench is a server on a Unix socket with its client.
type bench struct {
	*fake
	server *Server
	client *api.Client
	plain  *http.Client // what the client does not ask for
	socket string       // of the management interface
}

func serve(t testing.TB, cfg Config) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "api") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &bench{fake: newFake(), socket: paths.Management(filepath.Join(dir, "s"))}
	cfg.Driver = b.fake
	b.server = New(cfg)
	l, err := net.Listen("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- b.server.ServeUnix(l) }()
	t.Cleanup(func() {
		if err := errors.Join(b.server.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	b.client = api.NewClient(filepath.Join(dir, "s"))
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", b.socket)
	}
	b.plain = &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return b
}

// request makes a request without the client and returns the status and the answer.
func (b *bench) request(t testing.TB, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://driver"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := b.plain.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
