package main

import (
	"bufio"
	"context"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// asProgram makes the test binary the program itself.
const asProgram = "SOFTVPI_EXAMPLE_HTTP"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func program(ctx context.Context, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	c.Stderr = os.Stderr
	return c
}

// exchange runs server and client as processes of their own.
func exchange(t *testing.T, addrs [2]netip.Addr, env []string, serverArgs, clientArgs []string) {
	systemtest.Required(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	server := program(ctx, env, append(serverArgs, "-listen", netip.AddrPortFrom(addrs[0], 0).String())...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	at, ok := strings.CutPrefix(strings.TrimSpace(line), "serving at ")
	if !ok {
		t.Fatalf("the server says %q, %v", line, err)
	}
	got, err := program(ctx, env, append(clientArgs, "http://"+at+"/page")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got); !strings.HasPrefix(s, "200 OK\n/page, asked for by "+addrs[1].String()) || !strings.HasSuffix(s, " over rdma\n") {
		t.Errorf("the client prints %q", s)
	}
}

func TestEmbeddedInTwoProcesses(t *testing.T) {
	systemtest.Mark(t)
	addrs := testbed.Addrs()
	exchange(t, addrs, nil, []string{"-adapter", addrs[0].String()}, []string{"-adapter", addrs[1].String()})
}

func TestAttachedFromTwoProcesses(t *testing.T) {
	systemtest.Mark(t)
	addrs := testbed.Addrs()
	socket := testbed.Socket(t, addrs)
	exchange(t, addrs, []string{paths.SocketVariable + "=" + socket}, nil, nil)
}
