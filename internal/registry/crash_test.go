package registry

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

const (
	writerVariable = "REGISTRY_TEST_WRITER" // holds the directory and makes the process a writer
	timesVariable  = "REGISTRY_TEST_TIMES"
	members        = 20
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVariable); dir != "" {
		times, _ := strconv.Atoi(os.Getenv(timesVariable))
		if err := writeRounds(dir, times); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(burnerVariable); dir != "" {
		fmt.Fprintln(os.Stderr, burnRounds(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeRounds sets all members to the number of the round in one Apply and prints it when that is acknowledged.
func writeRounds(dir string, times int) error {
	r, err := Open(dir)
	if err != nil {
		return err
	}
	p := Path{ControlSet + `\Services\round`}
	for n := round(r) + 1; times > 0; n, times = n+1, times-1 {
		changes := []Change{{Kind: DeleteKey, Key: p, Lenient: true}}
		for i := range members {
			changes = append(changes, Change{Kind: SetValue, Key: p, Value: QWord(fmt.Sprint(i), uint64(n))})
		}
		grown := Value{fmt.Sprint("filler ", n%7), Binary, make([]byte, 300*(n%11))} // so that pages come and go
		if err := r.Apply(append(changes, Change{Kind: SetValue, Key: p, Value: grown})...); err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString(strconv.Itoa(n) + "\n"); err != nil {
			return err
		}
	}
	return nil // without Close: the process just ends
}

// round returns the number that all members have, or -1 if they differ.
func round(r *Registry) int {
	p := Path{ControlSet + `\Services\round`}
	first := 0
	for i := range members {
		v, _ := r.Get(p, fmt.Sprint(i))
		n, _ := v.Number()
		if i == 0 {
			first = int(n)
		}
		if int(n) != first {
			return -1
		}
	}
	return first
}

func writer(dir string, times int) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), writerVariable+"="+dir, timesVariable+"="+strconv.Itoa(times), "GODEBUG=asyncpreemptoff=1")
	c.Stderr = os.Stderr
	return c
}

// TestKilledWriter: a process that is killed while it writes leaves a whole registry with everything that was
// acknowledged, and of a change that was not, all or nothing.
func TestKilledWriter(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	dir := t.TempDir()
	for range 8 {
		c := writer(dir, 1<<30)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines, acknowledged := bufio.NewScanner(out), 0
		for range 1 + rand.N(12) {
			if !lines.Scan() {
				t.Fatal("the writer ended without being killed")
			}
			acknowledged, _ = strconv.Atoi(lines.Text())
		}
		time.Sleep(time.Duration(rand.N(3000)) * time.Microsecond) // anywhere in the next write
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			acknowledged, _ = strconv.Atoi(lines.Text())
		}
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait() // killed
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if aside, cause := r.SetAside(); aside != "" {
			t.Fatalf("the registry's file was set aside: %v", cause)
		}
		if got := round(r); got != acknowledged && got != acknowledged+1 {
			t.Fatalf("the registry has round %d, acknowledged was %d", got, acknowledged)
		}
		r.Close()
	}
}
