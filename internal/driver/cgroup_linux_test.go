package driver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

const (
	// groupVariable makes this test binary run a driver, with the configuration that it names, until its standard input
	// ends. It then prints the limit of memory of all programs.
	groupVariable = "SOFTVPI_TEST_GROUP"
	groupBytes    = 300 << 20
)

func init() {
	if drivenInGroup() {
		os.Exit(0)
	}
}

// drivenInGroup runs the driver of groupVariable, if it is set.
func drivenInGroup() bool {
	state := os.Getenv(groupVariable)
	if state == "" {
		return false
	}
	d, err := Start(context.Background(), config.Config{Socket: filepath.Join(state, "s"), State: state}, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("up", d.Status().Held.Memory.Total)
	_, _ = os.Stdin.Read(make([]byte, 1))
	if err := d.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return true
}

// memoryGroup makes a control group with a limit of memory and without swap, and returns its directory.
func memoryGroup(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a control group: needs root")
	}
	name := fmt.Sprintf("softvpi-test-%d", os.Getpid())
	bytes := strconv.Itoa(groupBytes)
	for _, v := range []struct {
		at     string
		limits [][2]string // the second one and those behind it may be missing
	}{
		{"/sys/fs/cgroup", [][2]string{{"memory.max", bytes}, {"memory.swap.max", "0"}}},
		{"/sys/fs/cgroup/memory", [][2]string{{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes}}},
	} {
		dir := filepath.Join(v.at, name)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		_, plain := os.Stat(filepath.Join(dir, "cgroup.procs")) // no group, but a directory beside mounts of them
		if plain != nil || os.WriteFile(filepath.Join(dir, v.limits[0][0]), []byte(v.limits[0][1]), 0o644) != nil {
			_ = os.Remove(dir)
			continue
		}
		for _, l := range v.limits[1:] {
			_ = os.WriteFile(filepath.Join(dir, l[0]), []byte(l[1]), 0o644)
		}
		t.Cleanup(func() {
			await.Until(func() bool { return os.Remove(dir) == nil }) // busy until its processes have been reaped
		})
		return dir
	}
	t.Skip("a control group: none with a limit of memory can be made here")
	return ""
}

// TestProgramsInASmallGroup: a driver in a control group of 300 MB gives programs half of that. A program that takes all
// the segments and rings that it can get, and writes to them, is refused more; the driver lives, and serves it and others.
func TestProgramsInASmallGroup(t *testing.T) {
	systemtest.Mark(t)
	group := memoryGroup(t)
	state := t.TempDir()
	// The shell enters the group before it becomes the driver.
	c := exec.Command("/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$1"`, group, os.Args[0])
	c.Env = append(os.Environ(), groupVariable+"="+state)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the driver: %v", err)
		}
	}()
	said, _ := bufio.NewReader(out).ReadString('\n')
	if total, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(said, "up ")), 10, 64); err != nil || total != groupBytes/2 {
		t.Fatalf("the driver says %q, want a limit of %d", said, groupBytes/2)
	}
	ctx := t.Context()
	var greedy []*client.Client
	defer func() {
		for _, c := range greedy {
			_ = c.Close()
		}
	}()
	var refused error
	for range 4 {
		c, err := client.Dial(ctx, filepath.Join(state, "s"), client.Options{})
		if err != nil {
			refused = err
			break
		}
		greedy = append(greedy, c)
		for {
			_, mem, err := c.AllocSegment(ctx, 4<<20)
			if err != nil {
				refused = err
				break
			}
			for i := 0; i < len(mem); i += 4096 {
				mem[i] = 1
			}
		}
		for {
			if _, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 1 << 16}); err != nil {
				refused = err
				break
			}
		}
		for {
			if _, err := c.CMCreate(ctx, command.CMCreate{Space: command.TCP, Adapter: command.AnyAdapter}); err != nil {
				refused = err
				break
			}
		}
		if !errors.Is(refused, &command.Error{Code: command.Exhausted}) || !strings.Contains(refused.Error(), "limits.memory") {
			t.Fatalf("a program that takes what it gets: %v", refused)
		}
	}
	for _, c := range greedy {
		if _, err := c.Adapters(ctx); err != nil {
			t.Errorf("the driver does not answer any more: %v", err)
		}
		_ = c.Close()
	}
	await.Eventually(t, "a program is served after those have ended", func() bool {
		c, err := client.Dial(ctx, filepath.Join(state, "s"), client.Options{})
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}
