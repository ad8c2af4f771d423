package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestQueuePairsAreLookedUpWhereTheyAreShown: the driver's queue pairs are looked up only for pages that show them.
func TestQueuePairsAreLookedUpWhereTheyAreShown(t *testing.T) {
	b := serve(t, Config{})
	for path, want := range map[string]int{"/adapters": 0, "/adapters/Ethernet%201": 0, "/programs": 0, "/connections": 1, "/status": 1} {
		b.whole = 0
		if status, text := b.request(t, "GET", path, ""); status != http.StatusOK || b.whole != want {
			t.Errorf("%s: %d, asked for the whole status %d times, want %d: %.200s", path, status, b.whole, want, text)
		}
	}
}

func TestRequestsReachTheDriver(t *testing.T) {
	b, ctx := serve(t, Config{}), context.Background()
	if s, err := b.client.Status(ctx); err != nil || len(s.Adapters) != 2 || s.Version != "test" {
		t.Errorf("status %+v, %v; want two adapters and the version test", s, err)
	}
	words, path := []string{"loss=1%"}, "wire"
	for want, do := range map[string]func() error{
		"{Ethernet 1 true}": func() error { return b.client.SetAdapter(ctx, api.AdapterRequest{Adapter: "Ethernet 1", Enable: true}) },
		"a/b c":             func() error { return b.client.RestartAdapter(ctx, "a/b c") },
	} {
		if err := do(); err != nil || fmt.Sprint(b.last) != want {
			t.Errorf("%v, %v; want %s", b.last, err, want)
		}
	}
	if err := b.client.SetLink(ctx, api.LinkRequest{Adapter: "Ethernet 2", Impairment: &words, Path: &path}); err != nil {
		t.Fatal(err)
	}
	if q := b.last.(api.LinkRequest); q.Adapter != "Ethernet 2" || (*q.Impairment)[0] != "loss=1%" || *q.Path != "wire" {
		t.Errorf("the driver received %+v", q)
	}
	if s, err := b.client.Settings(ctx, "Ethernet 1"); err != nil || len(s) != 1 || s[0].Name != "roce_mode" {
		t.Errorf("settings %+v, %v; want roce_mode alone", s, err)
	}
	if _, err := b.client.Set(ctx, "Ethernet 1", "*JumboPacket", "9014"); err != nil || *b.last.([]any)[2].(*string) != "9014" {
		t.Errorf("the driver received %v, %v; want the value 9014", b.last, err)
	}
	if _, err := b.client.Reset(ctx, "Ethernet 1", "*JumboPacket"); err != nil || b.last.([]any)[2].(*string) != nil {
		t.Errorf("the driver received %v, %v; want no value", b.last, err)
	}
	keys, err := b.client.Keys(ctx)
	if err != nil || len(keys) != len(catalogue.Keys()) {
		t.Errorf("%d keys of %d, %v", len(keys), len(catalogue.Keys()), err)
	}
	for _, k := range keys {
		if k.Name == "roce_mode" && strings.Contains(k.Place, "Class") &&
			k.Place != `HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\<nn>` {
			t.Errorf("place %s", k.Place)
		}
	}
}

// TestErrors: an error of the driver keeps its type and text through the client.
func TestErrors(t *testing.T) {
	b, ctx := serve(t, Config{}), context.Background()
	b.fail = api.Wrong("adapter", `"x"`, `"Ethernet 1"`)
	var field *api.FieldError
	if err := b.client.SetAdapter(ctx, api.AdapterRequest{Adapter: "x"}); !errors.As(err, &field) ||
		*field != *api.Wrong("adapter", `"x"`, `"Ethernet 1"`) {
		t.Errorf("error %v, want the driver's field error", err)
	}
	b.fail = errors.New("the adapter is on fire")
	if err := b.client.RestartAdapter(ctx, "x"); err == nil || err.Error() != "the adapter is on fire" {
		t.Errorf("error %v, want the driver's text", err)
	}
	bad := registry.Change{Kind: registry.SetValue, Key: roce(t), Value: registry.DWord("roce_mode", 7)}
	if _, err := b.client.ChangeRegistry(ctx, []registry.Change{bad}, false); err == nil || !strings.Contains(err.Error(), "allowed: 0 (") {
		t.Errorf("a value out of range: error %v, want one with the allowed ones", err)
	}
	gone := registry.Change{Kind: registry.DeleteValue, Key: roce(t), Value: registry.Value{Name: "x"}}
	if _, err := b.client.ChangeRegistry(ctx, []registry.Change{gone}, false); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("deleting what does not exist: error %v, want not found", err)
	}
	if _, err := api.NewClient(filepath.Join(t.TempDir(), "none")).Status(ctx); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("no driver: %v", err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		words              string
	}{
		{"GET", "/adapters/none", "", 422, `allowed: \"Ethernet 1\", \"Ethernet 2\"`},
		{"PUT", "/adapters/a/state", `{"enabled": true}`, 422, "unexpected property"},
		{"PUT", "/adapters/a/state", `{"enable": 1}`, 422, "expected boolean"},
		{"PUT", "/adapters/a/state", `{`, 400, ""},
		{"GET", "/nothing", "", 404, ""},
		{"DELETE", "/status", "", 405, ""},
		{"GET", "/registry/keys?path=HKCU%5Cx", "", 422, "begins with HKLM"},
		{"GET", "/registry/keys", "", 422, "required"},
		{"GET", "/connections?sort=colour", "", 422, "expected value to be one of"},
		{"GET", "/connections?limit=20000", "", 422, "<= 10000"},
		{"GET", "/registry/value?path=HKLM%5CSYSTEM%5CCurrentControlSet&name=x", "", 404, "unable to find"},
		{"PUT", "/registry/value?path=HKLM%5CSYSTEM%5CCurrentControlSet%5Cx", `{"name":"a","type":"REG_WORD"}`, 422, "allowed: REG_SZ"},
		{"POST", "/registry/import", "not a file", 422, "line 1: not a .reg file"},
	} {
		if status, text := b.request(t, c.method, c.path, c.body); status != c.status || !strings.Contains(text, c.words) {
			t.Errorf("%s %s: %d %s; want %d %s", c.method, c.path, status, text, c.status, c.words)
		}
	}
}

func roce(t testing.TB) registry.Path {
	t.Helper()
	p, err := registry.ParsePath(`HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Roce`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRegistryThroughTheClient(t *testing.T) {
	b, ctx := serve(t, Config{}), context.Background()
	changes := []registry.Change{
		{Kind: registry.SetValue, Key: roce(t), Value: registry.DWord("roce_mode", 0)},
		{Kind: registry.SetValue, Key: roce(t), Value: registry.Strings("list", []string{"a", "ü"})},
		{Kind: registry.SetValue, Key: roce(t), Value: registry.Value{Name: "odd", Type: 42, Data: []byte{1}}},
		{Kind: registry.CreateKey, Key: roce(t).Child("empty")},
	}
	notices, err := b.client.ChangeRegistry(ctx, changes, false)
	if err != nil || len(notices) < 2 {
		t.Fatalf("notices %v, %v; want at least 2", notices, err)
	}
	copied, err := b.client.LoadRegistry(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var here, there bytes.Buffer
	if err := errors.Join(b.reg.WriteRegFile(&here, registry.Path{}, registry.Version5), copied.WriteRegFile(&there, registry.Path{},
		registry.Version5)); err != nil {
		t.Fatal(err)
	}
	if here.String() != there.String() {
		t.Errorf("the copy holds\n%s\nthe registry\n%s", there.String(), here.String())
	}
	q := "path=" + "HKLM%5CSYSTEM%5CCurrentControlSet%5CServices%5Cmlx5"
	if status, text := b.request(t, "GET", "/registry/export?format=4&"+q, ""); status != 200 || !strings.HasPrefix(text, "REGEDIT4\r\n") {
		t.Errorf("export: %d %s", status, text)
	} else if status, _ := b.request(t, "DELETE", "/registry/key?"+q, ""); status != 200 {
		t.Errorf("delete: %d", status)
	} else if status, answer := b.request(t, "POST", "/registry/import", text); status != 200 {
		t.Errorf("import: %d %s", status, answer)
	}
	if v, ok := b.reg.Get(roce(t), "list"); !ok || !v.Equal(changes[1].Value) {
		t.Errorf("after export, deletion and import: %v %v", v, ok)
	}
}

func TestConnectionPages(t *testing.T) {
	b, ctx := serve(t, Config{}), context.Background()
	for i := range 10000 {
		b.status.Adapters[i%2].QPs = append(b.status.Adapters[i%2].QPs, api.QPStatus{
			Number: uint32(100000 - i), Owner: fmt.Sprint("program ", i%7), PID: i, Type: "RC", State: "RTS",
			Peer: netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}),
		})
	}
	page, err := b.client.Connections(ctx, api.ConnectionQuery{})
	if err != nil || page.Total != 10000 || len(page.Items) != 100 || page.Items[0].Number != 90001 || page.Items[99].Number != 90100 {
		t.Errorf("first page: %d, %d items, %v", page.Total, len(page.Items), err)
	}
	page, err = b.client.Connections(ctx, api.ConnectionQuery{Sort: "pid", Order: "down", Offset: 9990, Limit: 100})
	if err != nil || len(page.Items) != 10 || page.Items[9].PID != 0 {
		t.Errorf("last page: %d items, %v", len(page.Items), err)
	}
	page, err = b.client.Connections(ctx, api.ConnectionQuery{Search: "PROGRAM 3", Adapter: "Ethernet 2", Sort: "peer", Limit: 10000})
	if err != nil || page.Total != 715 || page.Items[0].Owner != "program 3" || page.Items[0].Adapter != "Ethernet 2" {
		t.Errorf("search: %d, %v", page.Total, err)
	}
	if page, err = b.client.Connections(ctx, api.ConnectionQuery{Search: "127.1.3.232"}); err != nil || page.Total != 1 ||
		page.Items[0].PID != 1000 {
		t.Errorf("search for a peer: %+v, %v", page, err)
	}
	for field := range orders {
		if _, err := b.client.Connections(ctx, api.ConnectionQuery{Sort: field, Limit: 1}); err != nil {
			t.Errorf("sort by %s: %v", field, err)
		}
	}
}

func TestFollowEvents(t *testing.T) {
	log := events.Open(events.Config{Directory: t.TempDir()})
	defer log.Close()
	b := serve(t, Config{Events: log})
	log.Raise(0, events.AdapterEnabled{Adapter: "before"})
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://driver/events/follow", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.plain.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	read := func(want string) string {
		var text []byte
		for buf := make([]byte, 4096); !strings.Contains(string(text), want); {
			n, err := resp.Body.Read(buf)
			text = append(text, buf[:n]...)
			if err != nil {
				t.Fatalf("%v after %q, want %q", err, text, want)
			}
		}
		return string(text)
	}
	read("events follow")
	log.Raise(0, events.AdapterEnabled{Adapter: "now"})
	if text := read("\"now\""); strings.Contains(text, "before") || !strings.Contains(text, "id: 2\nevent: event\ndata: {") {
		t.Errorf("want events from id 2 on, and none before:\n%s", text)
	}
}

// FuzzRequests: no request makes the server fail with an internal error.
func FuzzRequests(f *testing.F) {
	f.Add("PUT", "/adapters/a/state", `{"enable":true}`)
	f.Add("POST", "/registry/changes", `{"changes":[{"kind":"set value","path":"HKLM\\SYSTEM\\CurrentControlSet\\x","value":{"name":"a","type":"REG_SZ","data":"QQ=="}}]}`)
	f.Add("GET", "/registry/keys?path=HKLM&recurse=true", "")
	f.Add("POST", "/registry/import?unchecked=true", "REGEDIT4\n[HKLM\\SYSTEM\\CurrentControlSet\\x]\n\"a\"=dword:1\n")
	s := New(Config{Driver: newFake()})
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequest(method, "http://driver"+path, strings.NewReader(body))
		if err != nil {
			return
		}
		w := &recorder{header: http.Header{}}
		s.handler.ServeHTTP(w, r.WithContext(WithAccess(context.Background(), ChangeAccess)))
		if w.status >= 500 && w.status != http.StatusInsufficientStorage {
			t.Errorf("%s %s: %d %s", method, path, w.status, w.body.String())
		}
	})
}
