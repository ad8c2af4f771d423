package loopback

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// needsAddresses skips the test where 127.0.0.1 is the only loopback address.
func needsAddresses(t *testing.T) {
	t.Helper()
	l, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 16, 0, 1)})
	if err != nil {
		t.Skip("one loopback address only: ", err)
	}
	l.Close()
}

// fromTheFirst looks for free blocks from the first on, so that pools compete for them.
func fromTheFirst(int) int { return 0 }

func (p *pool) release() {
	for _, l := range append(p.addrs.held, p.ports.held...) {
		l.Close()
	}
}

func TestAddrs_NoneIsGivenTwice(t *testing.T) {
	needsAddresses(t)
	given := map[netip.Addr]int{}
	for i := range 4 { // each as another process's
		p := newPool(fromTheFirst)
		defer p.release()
		for range 130 {
			for _, a := range p.giveAddrs(3) {
				if other, taken := given[a]; taken {
					t.Fatalf("%v is given by the pools %d and %d", a, other, i)
				}
				if given[a] = i; !a.IsLoopback() || a.As4()[3] == claimHost {
					t.Fatalf("%v is given; want a loopback address other than a claim's", a)
				}
			}
		}
	}
}

func TestAddrs_AreAdjacentAtTheEndOfABlock(t *testing.T) {
	p := newPool(fromTheFirst)
	defer p.release()
	p.giveAddrs(MaxAddrs - 1)
	if a := p.giveAddrs(2); a[1] != a[0].Next() || a[0].As4()[3] != 1 {
		t.Errorf("%v, want the first two of the next block", a)
	}
}

func TestAddrs_PanicsBeyondABlock(t *testing.T) {
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "251 loopback addresses; allowed: 1 to 250") {
			t.Errorf("panicked with %q", s)
		}
	}()
	Addrs(MaxAddrs + 1)
}

func TestPort_NoneIsGivenTwice(t *testing.T) {
	needsAddresses(t)
	given := map[uint16]int{}
	for i := range 3 {
		p := newPool(fromTheFirst)
		defer p.release()
		for range perPortBlock + 1 {
			port := p.givePort()
			if other, taken := given[port]; taken {
				t.Fatalf("port %d is given by the pools %d and %d", port, other, i)
			}
			given[port] = i
		}
	}
}

// A port that a program holds which is no test is passed over.
func TestPort_PassesOverWhatIsInUse(t *testing.T) {
	needsAddresses(t)
	p := newPool(fromTheFirst)
	defer p.release()
	foreign, err := net.ListenUDP("udp", &net.UDPAddr{Port: int(p.givePort()) + 1})
	if err != nil {
		t.Skip(err)
	}
	defer foreign.Close()
	if got := int(p.givePort()); got == foreign.LocalAddr().(*net.UDPAddr).Port {
		t.Errorf("port %d is given, which is in use", got)
	}
}

// asHolder makes the test binary claim the first free block, say which, and wait for the end of its input.
const asHolder = "SOFTVPI_TEST_AS_HOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(asHolder) != "" {
		os.Stdout.WriteString(newPool(fromTheFirst).giveAddrs(1)[0].String() + "\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestClaim_LastsAsLongAsItsProcess: while a process lives another gets another block, and when it is killed its block
// is free.
func TestClaim_LastsAsLongAsItsProcess(t *testing.T) {
	systemtest.Mark(t)
	needsAddresses(t)
	if runtime.GOOS == "windows" {
		t.Skip("not tried on Windows")
	}
	hold := func() (cmd *exec.Cmd, at string) {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asHolder+"=1")
		in, err := cmd.StdinPipe()
		if err == nil {
			t.Cleanup(func() { in.Close() })
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		at, err = bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return cmd, at
	}
	first, at := hold()
	if _, other := hold(); other == at {
		t.Fatalf("two processes have %s", at)
	}
	first.Process.Kill()
	first.Wait()
	if _, again := hold(); again != at {
		t.Errorf("after the process was killed another got %s, want its block again, %s", again, at)
	}
}
