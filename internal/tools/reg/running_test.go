package reg

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// While a driver runs, the tool works through the driver, and a change takes effect there; the registry's file is the
// driver's alone.
func TestRunningDriver(t *testing.T) {
	dir, err := os.MkdirTemp("", "reg") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := config.Config{
		Socket: filepath.Join(dir, "s"), State: filepath.Join(dir, "state"), SkipSelfCheck: true,
		Adapters: []config.Adapter{{Name: "only", Address: loopback.Addr()}},
	}
	d, err := driver.Start(t.Context(), cfg, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(line string) (int, string) {
		var out strings.Builder
		args := append(words(strings.ReplaceAll(line, "$DIR", dir)), "--socket", cfg.Socket)
		status := Main(context.Background(), tool.Env{Name: "reg", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
		return status, out.String()
	}
	for _, c := range []struct {
		line   string
		status int
		words  string
	}{
		{`add RoceMaxFrameSize --adapter only /d 1024`, 0, "takes effect when the adapter restarts"},
		{`query RoceMaxFrameSize --adapter only`, 0, "RoceMaxFrameSize    REG_SZ    1024"},
		{`query RoceMaxFrameSize --adapter only`, 0, "note: RoceMaxFrameSize: (the largest that the link's MTU holds) is in force until \"only\" restarts"},
		{`query HKLM\SYSTEM\CurrentControlSet\Control\Class /s`, 0, "is in force until"},
		{`add RoceMaxFrameSize --adapter only /d 1000 /f`, 2, "allowed: 256, 512"},
		{`add HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters /v MaxCMRetries /t REG_DWORD /d 16`, 2,
			"MaxCMRetries is 16; allowed: 1 to 15"},
		{`add HKLM\SYSTEM\CurrentControlSet\Services\mlx5\x /v y`, 0, "not a key of this driver"},
		{`export HKLM\SYSTEM\CurrentControlSet\Services\mlx5\x $DIR/x.reg`, 0, "successfully"},
		{`delete HKLM\SYSTEM\CurrentControlSet\Services\mlx5\x /f`, 0, "successfully"},
		{`query HKLM\SYSTEM\CurrentControlSet\Services\mlx5\x`, 1, "unable to find"},
		{`delete HKLM\SYSTEM\CurrentControlSet\Services\mlx5\x /f`, 1, "unable to find"},
		{`import $DIR/x.reg`, 0, "successfully"},
		{`query HKLM\SYSTEM\CurrentControlSet\Services\mlx5\x /v y`, 0, "y    REG_SZ"},
	} {
		if status, text := run(c.line); status != c.status || !strings.Contains(text, c.words) {
			t.Errorf("%s: status %d, %s; want %d and %q", c.line, status, text, c.status, c.words)
		}
	}
	if _, text := run(`query HKLM\SYSTEM\CurrentControlSet\Services /s`); strings.Contains(text, "in force") {
		t.Errorf("a key that is no adapter's has a value in force: %s", text)
	}
	if err := d.RestartAdapter("only"); err != nil {
		t.Fatal(err)
	}
	if _, text := run(`query RoceMaxFrameSize --adapter only`); strings.Contains(text, "in force") {
		t.Errorf("after the restart another value than the registry's is in force: %s", text)
	}
	if got := d.Status().Adapters[0].ActiveMTU; got != 1024 {
		t.Errorf("MTU %d after the restart, want 1024", got)
	}
	if status, text := runWith("query RoceMaxFrameSize --adapter only", cfg.State); status != 1 ||
		!strings.Contains(text, "another process") {
		t.Errorf("the file of a running driver: status %d, %s; want 1 and \"another process\"", status, text)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if status, text := run("query RoceMaxFrameSize --adapter only --state " + cfg.State); status != 0 || !strings.Contains(text, "1024") {
		t.Errorf("after the driver has ended: status %d, %s; want 0 and 1024", status, text)
	}
}

// runWith runs a line against the registry's file in a state directory.
func runWith(line, state string) (int, string) {
	var out strings.Builder
	args := append(words(line), "--state", state)
	status := Main(context.Background(), tool.Env{Name: "reg", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	return status, out.String()
}
