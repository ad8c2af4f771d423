package server_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

var ctx = context.Background()

func dial(t testing.TB, path string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// pair returns a fake host and a client that is attached to it.
func pair(t testing.TB, cfg server.Config, o client.Options) (*fake.Host, *client.Client) {
	t.Helper()
	h := &fake.Host{}
	_, path := fake.Serve(t, h, cfg)
	return h, dial(t, path, o)
}

func TestMain(m *testing.M) {
	if socket := os.Getenv(childVariable); socket != "" {
		if err := child(socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaks.Main(m)
}
