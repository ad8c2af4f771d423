package ndinfo

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

func call(main tool.Main, line string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = main(context.Background(), tool.Env{Name: "tester", Args: strings.Fields(line), Stdout: &out, Stderr: &errs})
	return status, out.String(), errs.String()
}

func TestWrongArguments(t *testing.T) {
	for _, c := range []struct {
		main       tool.Main
		line, want string
	}{
		{Install, "-i", "-i and -r are not needed here"},
		{Install, "-r", "allowed: -l"},
		{Install, "stray", "unexpected argument"},
		{Install, "-x", "not defined: -x; allowed: --mode -i -l -r"},
		{AdapterInfo, "host", "allowed: an IPv4 or IPv6 address"},
		{AdapterInfo, "127.9.0.1 127.9.0.2", "2 arguments; allowed: none, or one"},
	} {
		status, stdout, stderr := call(c.main, c.line)
		if status != tool.Usage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %q, %q; want %q", c.line, status, stdout, stderr, c.want)
		}
	}
}

func TestAdapterInfoShowsAnEmbeddedAdapter(t *testing.T) {
	t.Setenv(paths.SocketVariable, filepath.Join(t.TempDir(), "none"))
	addr := loopback.Addr().String()
	status, stdout, stderr := call(AdapterInfo, addr)
	if status != tool.Success {
		t.Fatalf("the adapter's info: status %d, %s", status, stderr)
	}
	for _, want := range []string{addr, "embedded", "MaxCallerData               56", "MaxCalleeData               148", "IN_ORDER_DMA",
		"up"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in:\n%s", want, stdout)
		}
	}
}
