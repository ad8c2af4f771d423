package faults

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestTurnThatNeverEnds: a driver whose loop has stopped for good ends itself by a panic instead of hanging, and the next one finds the
// tracebacks of all goroutines, among them the one that has the turn, and reports them.
func TestTurnThatNeverEnds(t *testing.T) {
	systemtest.Mark(t)
	t.Setenv(patienceVariable, "6s")
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right"})
	cfg.FaultInjection = true
	client := api.NewClient(cfg.Socket)
	p := start(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() { // which may be given the turn, and then gets no answer
		defer close(asked)
		_ = client.InjectFault(ctx, api.FaultRequest{Adapter: "left", Fault: "turn"})
	}()
	err := p.cmd.Wait()
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGABRT {
		t.Fatalf("the driver ends with %v, want SIGABRT: its unit does not start it again after the status 2", err)
	}
	cancel()
	<-asked
	p = start(t, cfg)
	defer p.stop()
	s, err := client.Status(t.Context())
	if err != nil || s.Died == nil {
		t.Fatalf("%v; the status says %+v", err, s.Died)
	}
	if !strings.HasPrefix(s.Died.Cause, "panic: the loop of the driver has not answered") ||
		!strings.HasPrefix(filepath.Base(s.Died.Folder), "dmn-driver-GENERAL-CRASH-panic--") {
		t.Errorf("the status says %+v", s.Died)
	}
	b, err := os.ReadFile(filepath.Join(s.Died.Folder, "traceback_0.log"))
	for _, part := range []string{"panic: the loop of the driver", "device.(*portLoop).guarded("} {
		if err != nil || !strings.Contains(string(b), part) {
			t.Errorf("the traceback does not have %s: %v\n%s", part, err, b)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Died.Folder, "commands_0.log")); err != nil {
		t.Error(err)
	}
}
