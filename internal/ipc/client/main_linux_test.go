package client

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

var ctx = context.Background()

func dial(t testing.TB, path string, o Options) *Client {
	t.Helper()
	c, err := Dial(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// pair returns a fake host and a client that is attached to it.
func pair(t testing.TB, cfg server.Config, o Options) (*fake.Host, *Client) {
	t.Helper()
	h := &fake.Host{}
	_, path := fake.Serve(t, h, cfg)
	return h, dial(t, path, o)
}

// TrafficVariable makes this test binary run Traffic, a program on the public API that the tests of the real device
// set.
const TrafficVariable = "SOFTVPI_TEST_TRAFFIC"

// Traffic is the program of TrafficVariable.
var Traffic func(arg string) error

// programs are what this test binary may be run as, by the environment variables that ask for them, which hold their
// arguments.
var programs = map[string]func(arg string) error{
	TrafficVariable:  func(arg string) error { return Traffic(arg) },
	ScribbleVariable: scribbler,
	SoakVariable:     soaked,
}

// ran runs the program that a test started this binary as, and reports whether it did.
func ran() bool {
	for variable, program := range programs {
		arg := os.Getenv(variable)
		if arg == "" {
			continue
		}
		if err := program(arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return true
	}
	return false
}

func TestMain(m *testing.M) {
	if ran() {
		return
	}
	leaks.Main(m)
}
