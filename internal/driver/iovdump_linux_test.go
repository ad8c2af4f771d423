package driver

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/verbs"
)

// TestDumpOfFunctions: a dump-me-now folder of a device with virtual functions has a file about them, in which is what
// DmnIovMode says: nothing, the functions, their objects, the queues of queue pairs, everything (WinOF 5.50, 4.7.4.1).
func TestDumpOfFunctions(t *testing.T) {
	t.Parallel()
	cfg := hosting(t)
	cfg.Adapters[0].Generation, cfg.Adapters[1].Generation = "mlx4", "mlx4"
	d, err := Start(context.Background(), cfg, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, d)
	dumped := func() (text string, there bool) {
		t.Helper()
		out, err := d.Dump("a", api.DumpRequest{Kind: api.DumpMeNow})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(out.Directory, "iov_0.log"))
		return string(b), err == nil
	}
	if text, there := dumped(); there {
		t.Errorf("without virtual functions there is %s", text)
	}
	f, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "b", Name: "other"}); err != nil {
		t.Fatal(err)
	}
	const function, object, mapping, table = "\nname \"one\" up true mac ", "\nQP number 0x", "\nmap qp 0x", "\nGID row "
	parts := []string{function, object, mapping, table}
	for mode := range len(parts) + 1 { // each has one of them more
		set(t, d, "a", "DmnIovMode", fmt.Sprint(mode))
		if err := d.RestartAdapter("a"); err != nil {
			t.Fatal(err)
		}
		session, err := verbs.Attach(t.Context(), paths.Function(cfg.Socket, "one"))
		if err != nil {
			t.Fatal(err)
		}
		side, err := newCheckSide(session, netip.MustParsePrefix(f.Address).Addr(), 4096, verbs.LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		text, there := dumped()
		if there != (mode > 0) {
			t.Errorf("mode %d: a file: %v", mode, there)
		}
		for i, part := range parts {
			if got := strings.Contains(text, part); got != (i < mode) {
				t.Errorf("mode %d: %q is in it: %v\n%s", mode, part, got, text)
			}
		}
		if mode > 0 && !strings.Contains(text, "[vf 0 of a]") || strings.Contains(text, "other") {
			t.Errorf("mode %d: it is about\n%s", mode, text)
		}
		if err := side.close(); err != nil {
			t.Error(err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}
