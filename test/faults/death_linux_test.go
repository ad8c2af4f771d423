package faults

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/verbs"
)

// TestDriverThatDies: the next driver finds why the one before died, with the traceback of a fatal signal and the commands that it
// was given last, keeps that in a folder of its own, and reports it by an event and in its status; after a clean stop it finds nothing.
func TestDriverThatDies(t *testing.T) {
	for sig, c := range map[syscall.Signal]struct{ cause, reason string }{
		syscall.SIGQUIT: {"SIGQUIT", "SIGQUIT"}, syscall.SIGABRT: {"SIGABRT", "SIGABRT"}, syscall.SIGKILL: {"killed, without", "killed"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right"})
			client := api.NewClient(cfg.Socket)
			p := start(t, cfg)
			host, err := verbs.Attach(t.Context(), cfg.Socket)
			if err != nil {
				t.Skip(err)
			}
			defer host.Close()
			dev, err := host.DeviceByAddr(cfg.Adapters[1].Address)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dev.AllocPD(); err != nil {
				t.Fatal(err)
			}
			p.signal(sig)
			if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != sig && s.Signal() != syscall.SIGABRT {
				t.Errorf("the driver ends with %v, for which its unit may not start it again", p.cmd.ProcessState)
			}
			p = start(t, cfg)
			s, err := client.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s.Died == nil || !strings.HasPrefix(s.Died.Cause, c.cause) ||
				!strings.HasPrefix(filepath.Base(s.Died.Folder), "dmn-driver-GENERAL-CRASH-"+c.reason+"--") {
				t.Fatalf("the status says %+v", s.Died)
			}
			want := map[string]string{"commands_0.log": `adapter "right" ALLOC_PD program`, "fwtrace_0.log": "has started as process"}
			if sig != syscall.SIGKILL {
				want["traceback_0.log"] = "faults.beDriver("
			}
			for name, part := range want {
				b, err := os.ReadFile(filepath.Join(s.Died.Folder, name))
				if err != nil || !strings.Contains(string(b), part) {
					t.Errorf("%s does not have %s: %v\n%s", name, part, err, b)
				}
			}
			var page struct {
				Events []struct{ Symbol, Message string }
			}
			if err := client.Get(t.Context(), "/events", nil, &page); err != nil {
				t.Fatal(err)
			}
			told := 0
			for _, e := range page.Events {
				if e.Symbol == "DriverDied" && strings.Contains(e.Message, s.Died.Folder) {
					told++
				}
			}
			if told != 1 {
				t.Errorf("%d events tell of the death, want 1", told)
			}
			p.stop()
			p = start(t, cfg)
			if s, err := client.Status(t.Context()); err != nil || s.Died != nil {
				t.Errorf("after a clean stop: %+v, %v", s.Died, err)
			}
			p.stop()
		})
	}
}
