package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/service"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// actAsService makes the test binary act as softvpi up with the command line in it, as JSON, which a service manager has started.
const actAsService = "SOFTVPI_TEST_AS_SERVICE"

// pretendedManager is a service manager that prints what it hears, and wants what comes in by lines.
func pretendedManager(serve service.Serve) error {
	commands := make(chan service.Command)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- map[string]service.Command{"how": service.Interrogate, "stop": service.Stop}[lines.Text()]
		}
	}()
	names := map[service.State]string{service.Starting: "starting", service.Running: "running", service.Stopping: "stopping"}
	err := serve(commands, func(s service.State) { fmt.Println("it is", names[s]) })
	fmt.Println("it has ended:", err)
	return nil
}

// beService is softvpi up as a service.
func beService() {
	var c upCmd
	if err := json.Unmarshal([]byte(os.Getenv(actAsService)), &c); err != nil {
		panic(err)
	}
	env := tool.Env{Name: "softvpi", Args: []string{"up"}, Stdout: os.Stderr, Stderr: os.Stderr}
	err := c.run(&session{context.Background(), env}, func(ctx context.Context) (*service.Service, context.Context, error) {
		s, ctx := service.Start(ctx, pretendedManager)
		return s, ctx, nil
	})
	os.Exit(exitStatus(context.Background(), env, err))
}

// serve starts softvpi up as a service.
func (p place) serve(t *testing.T, c upCmd) (x *process, want func(command string)) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, actAsService+"="+string(text))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { w.Close() })
	p.input = r
	return p.spawn(t), func(command string) {
		if _, err := fmt.Fprintln(w, command); err != nil {
			t.Error(err)
		}
	}
}

// TestService: the manager of services hears when the driver is up, how it is and that it stops, and ends it; what the driver prints is in
// driver.log of the state directory, since a service has no output.
func TestService(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	x, want := p.serve(t, upCmd{Adapter: []string{"Ethernet 1=" + p.first}, SkipSelfCheck: true})
	x.until(t, "it is starting")
	x.until(t, "it is running")
	if code, out, errs := p.run(t, "status"); code != 0 || !strings.Contains(out, "Ethernet 1") {
		t.Errorf("status %d, %s%s", code, out, errs)
	}
	want("how")
	x.until(t, "it is running")
	want("stop")
	x.until(t, "it is stopping")
	x.until(t, "it has ended: <nil>")
	if code, out, errs := x.wait(t); code != 0 || errs != "" {
		t.Errorf("status %d, %s%s", code, out, errs)
	}
	log, err := os.ReadFile(filepath.Join(p.dir, "state", "driver.log"))
	if err != nil || !strings.Contains(string(log), listening) || !strings.Contains(string(log), "\nstopping\n") {
		t.Errorf("%v\n%s", err, log)
	}
}

// TestService_Fails: the manager hears why a driver cannot be a service, and the status is as in a terminal.
func TestService_Fails(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for name, c := range map[string]struct {
		up     upCmd
		status int
		why    string
	}{
		"a wrong adapter":   {upCmd{Adapter: []string{"Ethernet 1=nowhere"}}, 2, "nowhere"},
		"in the background": {upCmd{Adapter: []string{"Ethernet 1=" + p.first}, Background: true}, 2, "--background"},
		"a wrong level":     {upCmd{Adapter: []string{"Ethernet 1=" + p.first}, Log: "loud"}, 2, "debug, info, warn, error"},
		"an event log that Windows alone has": {upCmd{Adapter: []string{"Ethernet 1=" + p.first}, SystemLog: "eventlog", SkipSelfCheck: true}, 1,
			"not on this system"},
	} {
		x, _ := p.serve(t, c.up)
		code, out, _ := x.wait(t)
		if code != c.status || !strings.Contains(out, "it has ended: ") || !strings.Contains(out, c.why) || strings.Contains(out, "running") {
			t.Errorf("%s: status %d, %s; want %d and %q", name, code, out, c.status, c.why)
		}
	}
}
