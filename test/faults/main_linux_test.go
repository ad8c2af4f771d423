package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// configurationVariable holds a driver's configuration; a process in which it is set becomes that driver.
const configurationVariable = "SOFTVPI_FAULTS_DRIVER"

func TestMain(m *testing.M) {
	if c := os.Getenv(configurationVariable); c != "" {
		if err := beDriver(c, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// patienceVariable says how long such a driver's loop may not answer.
const patienceVariable = "SOFTVPI_FAULTS_PATIENCE"

// beDriver runs a driver until its input ends. It prints a line when the driver is up.
func beDriver(configuration string, in io.Reader, out io.Writer) error {
	var cfg config.Config
	if err := json.Unmarshal([]byte(configuration), &cfg); err != nil {
		return err
	}
	o := driver.Options{Version: driverbed.Version, OwnProcess: true}
	if text := os.Getenv(patienceVariable); text != "" {
		var err error
		if o.LoopPatience, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	d, err := driver.Start(context.Background(), cfg, o)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "up")
	_, _ = io.Copy(io.Discard, in)
	return d.Close()
}

// process is a driver in a process of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	said  strings.Builder // what it printed on standard error
}

// run starts a driver. up is false if it ends instead, which it has explained on standard error.
func run(t *testing.T, cfg config.Config) (p *process, up bool) {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p = &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), configurationVariable+"="+string(text))
	p.cmd.Stderr = &p.said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "up\n" {
		_ = p.cmd.Wait() // its status is the one expected of a driver that is not up
		return p, false
	}
	return p, true
}

func start(t *testing.T, cfg config.Config) *process {
	t.Helper()
	p, up := run(t, cfg)
	if !up {
		t.Fatalf("the driver does not start: %s", p.said.String())
	}
	return p
}

// kill ends the driver as kill -9 does.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
}

// signal ends the driver by a signal that it does not survive.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // the error is that it was killed
}

// stop ends the driver in order.
func (p *process) stop() {
	p.t.Helper()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the driver ends with %v: %s", err, p.said.String())
	}
}
