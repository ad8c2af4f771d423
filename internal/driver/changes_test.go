package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/registry"
)

const ownKey = `HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Together`

// together returns changes that set five values of one key to n.
func together(t testing.TB, n uint32) (out []registry.Change) {
	t.Helper()
	key, err := registry.ParsePath(ownKey)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		out = append(out, registry.Change{Kind: registry.SetValue, Key: key, Value: registry.DWord(fmt.Sprint(i), n)})
	}
	return out
}

// whole returns the text that all five values have, and fails if they differ.
func whole(t testing.TB, keys []api.RegistryKey) string {
	t.Helper()
	if len(keys) != 1 || len(keys[0].Values) != 5 {
		t.Errorf("half a change: %+v", keys)
		return ""
	}
	for _, v := range keys[0].Values {
		if v.Text != keys[0].Values[0].Text {
			t.Errorf("half a change: %+v", keys[0].Values)
		}
	}
	return keys[0].Values[0].Text
}

// TestConcurrentChangesAreSerialised: many clients change the registry, links and adapters at a time. Each change is
// made whole, none is lost, and a reader never sees half of one.
func TestConcurrentChangesAreSerialised(t *testing.T) {
	cfg := quiet(t)
	d := start(t, cfg)
	defer stop(t, d)
	if _, err := NewAdmin(cfg.Socket).ChangeRegistry(t.Context(), together(t, 0), true); err != nil {
		t.Fatal(err)
	}
	query := map[string][]string{"path": {ownKey}}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			admin := NewAdmin(cfg.Socket)
			for round := range 4 {
				var errs [3]error
				_, errs[0] = admin.ChangeRegistry(t.Context(), together(t, uint32(10*i+round)), true)
				words := []string{fmt.Sprintf("loss=%d%%", i+1)}
				errs[1] = admin.SetLink(t.Context(), api.LinkRequest{Adapter: "left", Impairment: &words})
				if i == 0 {
					errs[2] = admin.RestartAdapter(t.Context(), "right")
				}
				var keys []api.RegistryKey
				if err := admin.Get(t.Context(), "/registry/keys", query, &keys); err != nil || errs != [3]error{} {
					t.Errorf("reading the keys: %v; changing: %v", err, errs)
				}
				whole(t, keys)
			}
		})
	}
	wg.Wait()
	s := d.Status()
	if !s.Adapters[1].Enabled || !s.Adapters[1].Up || !strings.HasPrefix(s.Adapters[0].Impairment, "loss=") {
		t.Errorf("right is enabled: %v, up: %v; left has the impairment %q", s.Adapters[1].Enabled, s.Adapters[1].Up,
			s.Adapters[0].Impairment)
	}
}

// TestAcknowledgedChangesAreOnTheDisk: an acknowledged change is in a copy of the files made at that moment, as after
// a loss of power.
func TestAcknowledgedChangesAreOnTheDisk(t *testing.T) {
	cfg := quiet(t)
	d := start(t, cfg)
	defer stop(t, d)
	admin := NewAdmin(cfg.Socket)
	key, _ := registry.ParsePath(ownKey)
	for n := range uint32(5) {
		if _, err := admin.ChangeRegistry(t.Context(), together(t, n), true); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(cfg.State)); err != nil {
			t.Fatal(err)
		}
		r, err := registry.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if v, ok := r.Get(key, fmt.Sprint(i)); !ok || v.Show() != registry.DWord("", n).Show() {
				t.Errorf("change %d: value %d in the copy is %v", n, i, v.Show())
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFailedChangesLeaveTheFormerState: a change that fails, in whatever part, leaves everything as it was.
func TestFailedChangesLeaveTheFormerState(t *testing.T) {
	t.Parallel()
	cfg := quiet(t)
	d := start(t, cfg)
	defer stop(t, d)
	admin := NewAdmin(cfg.Socket)
	words, path := []string{"delay=1ms"}, "wire"
	if err := admin.SetLink(t.Context(), api.LinkRequest{Adapter: "left", Impairment: &words, Path: &path}); err != nil {
		t.Fatal(err)
	}
	set(t, d, "left", "roce_udp_dport", "4792")
	before := everything(t, d)
	value := func(name, kind, data string) string {
		return fmt.Sprintf(`{"kind":"set value","path":%q,"value":{"name":%q,"type":%q,"data":%q}}`, roceKey, name, kind, data)
	}
	good := value("roce_mode", "REG_DWORD", "AgAAAA==")
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/registry/changes", `{"changes":[` + good + `,` + value("roce_udp_dport", "REG_DWORD", "AAAAAA==") + `]}`},
		{"POST", "/registry/changes", `{"changes":[` + good + `,` + value("roce_udp_dport", "REG_DWORD", "AAA=") + `]}`},
		{"POST", "/registry/changes", `{"changes":[` + good + `,{"kind":"delete key","path":"HKLM\\SYSTEM\\None"}]}`},
		{"POST", "/registry/changes", `{"changes":[` + good + `,{"kind":"set value","path":"HKCU\\x"}]}`},
		{"POST", "/registry/changes", `{"changes":[` + good},
		{"POST", "/registry/import", "REGEDIT4\r\n\r\n[" + roceKey +
			"]\r\n\"roce_mode\"=dword:00000002\r\n\"roce_udp_dport\"=dword:00100000\r\n"},
		{"POST", "/registry/import", "REGEDIT4\r\n\r\n[" + roceKey +
			"]\r\n\"roce_mode\"=dword:00000002\r\n\"roce_udp_dport\"=nonsense\r\n"},
		{"PUT", "/adapters/left/settings/roce_udp_dport", `{"value":"65536"}`},
		{"PUT", "/adapters/left/settings/roce_udp", `{"value":"5"}`},
		{"DELETE", "/adapters/left/settings/none", ""},
		{"PATCH", "/adapters/left/link", `{"impairment":["loss=1%","colour=red"]}`},
		{"PATCH", "/adapters/left/link", `{"impairment":["loss=1%"],"path":"sideways"}`},
		{"PUT", "/adapters/middle/state", `{"enable":false}`},
		{"PUT", "/adapters/left/state", `{"enable":"no"}`},
		{"POST", "/adapters/middle/restart", ""},
		{"POST", "/adapters/left/dumps", `{"kind":"none"}`},
		{"POST", "/captures", `{"adapter":"left","file":"x"}`},
		{"POST", "/adapters/left/packet-buffer", `{}`},
		{"POST", "/tuning", `{"scenario":"dual port","adapters":["left","middle"]}`},
	} {
		if status, text := manage(t, cfg, c.method, c.path, c.body); status < 400 || status > 499 {
			t.Errorf("%s %s %s: status %d (%s), want a refusal", c.method, c.path, c.body, status, text)
		}
		if diff := cmp.Diff(before, everything(t, d)); diff != "" {
			t.Fatalf("%s %s %s changed:\n%s", c.method, c.path, c.body, diff)
		}
	}
}

// everything describes all that changes can change.
func everything(t *testing.T, d *Driver) []string {
	t.Helper()
	root, err := registry.ParsePath(registry.Root)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.Registry().WriteRegFile(&b, root, registry.Regedit4); err != nil {
		t.Fatal(err)
	}
	out := strings.Split(b.String(), "\r\n")
	for _, a := range d.Status().Adapters {
		list, err := d.Settings(a.Name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text), fmt.Sprint(a.Name, a.Enabled, a.Up, a.RoCE, a.UDPPort, a.Path, a.Impairment, a.Pending))
	}
	return append(out, fmt.Sprint(d.Captures()))
}

// manage makes a request to the management interface of a driver and returns the status and the body.
func manage(t *testing.T, cfg config.Config, method, path, body string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", paths.Management(cfg.Socket))
	}}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://driver"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path, "import") {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	resp, err := client.Do(r)
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
