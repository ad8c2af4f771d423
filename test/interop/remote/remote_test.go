package remote_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/test/interop/remote"
)

// TestMain lets the test binary act as the program that is run.
func TestMain(m *testing.M) {
	switch os.Getenv("REMOTE_TEST_PROGRAM") {
	case "":
		os.Exit(m.Run())
	case "echo":
		buf := make([]byte, 100)
		n, _ := os.Stdin.Read(buf)
		os.Stdout.WriteString(strings.ToUpper(string(buf[:n])))
		os.Exit(7)
	case "hang":
		os.Stdout.WriteString("here\n")
		time.Sleep(time.Hour)
	}
}

func start(t *testing.T, args ...string) (*remote.Process, chan string) {
	t.Helper()
	near, far := net.Pipe()
	go remote.Serve(far)
	out := make(chan string, 16)
	p, err := remote.Start(near, func(b []byte) { out <- string(b) }, args...)
	if err != nil {
		t.Fatal(err)
	}
	return p, out
}

func self(t *testing.T, program string) string {
	t.Setenv("REMOTE_TEST_PROGRAM", program)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func TestInputOutputAndStatusTravel(t *testing.T) {
	p, out := start(t, self(t, "echo"))
	if _, err := p.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(); status != 7 || err != nil {
		t.Errorf("status %d, error %v; want 7", status, err)
	}
	if got := <-out; got != "HELLO\n" {
		t.Errorf("output is %q", got)
	}
}

func TestKillEndsTheProgram(t *testing.T) {
	p, out := start(t, self(t, "hang"))
	<-out
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(); status == 0 || err != nil {
		t.Errorf("status %d, error %v; want a status that is not 0", status, err)
	}
}

func TestProgramThatIsNotThereSaysSo(t *testing.T) {
	p, out := start(t, "/no/such/program")
	if status, _ := p.Wait(); status != 125 {
		t.Errorf("status %d, want 125", status)
	}
	if got := <-out; !strings.Contains(got, "/no/such/program") {
		t.Errorf("output %q does not name the program", got)
	}
}
