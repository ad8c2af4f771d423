package registry

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// burnerVariable holds the directory and makes the process one that burns.
const burnerVariable = "REGISTRY_TEST_BURNER"

// burned is an image that says in several of its parts which round it is of.
func burned(round int) firmware.Image {
	m := firmware.Factory(catalogue.MLX5)
	m.Name, m.GUID = fmt.Sprint("round ", round), uint64(round)
	m.Description = strings.Repeat(string(rune('a'+round%26)), 100)
	m.Parameters = map[string]uint64{"NUM_OF_VFS": uint64(1 + round%16)}
	return m
}

var burnedDevice = Adapter{Name: "Ethernet 1", Generation: catalogue.MLX5, Number: 1}

// burnRounds burns image after image, and prints the round when a burn is acknowledged.
func burnRounds(dir string) error {
	r, err := Open(dir)
	if err != nil {
		return err
	}
	m, problem := r.Firmware(burnedDevice)
	if problem != nil {
		return problem
	}
	for n := int(m.GUID) + 1; ; n++ {
		m := burned(n)
		if err := r.Apply(burnedDevice.Burn(&m)); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return err
		}
	}
}

// TestKilledBurn: after a kill in the middle of a burn the flash holds the image of before or the new one, whole, and every image whose
// burn was acknowledged.
func TestKilledBurn(t *testing.T) {
	systemtest.Mark(t)
	dir := t.TempDir()
	for range 8 {
		c := exec.Command(os.Args[0], "-test.run=^$")
		c.Env, c.Stderr = append(os.Environ(), burnerVariable+"="+dir), os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines, acknowledged := bufio.NewScanner(out), 0
		read := func() bool {
			ok := lines.Scan()
			if ok {
				_, _ = fmt.Sscan(lines.Text(), &acknowledged)
			}
			return ok
		}
		for range 1 + rand.N(8) {
			if !read() {
				t.Fatal("the burner ended without being killed")
			}
		}
		time.Sleep(time.Duration(rand.N(3000)) * time.Microsecond) // anywhere in the next burn
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for read() {
		}
		_ = c.Wait() // it was killed
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m, problem := r.Firmware(burnedDevice)
		if err := r.Close(); err != nil || problem != nil {
			t.Fatalf("the flash: %v (%v)", problem, err)
		}
		if whole := burned(int(m.GUID)); string(m.Encode()) != string(whole.Encode()) {
			t.Errorf("the flash holds parts of several images: %+v", m)
		}
		if n := int(m.GUID); n != acknowledged && n != acknowledged+1 {
			t.Errorf("the flash holds image %d; %d was acknowledged last", n, acknowledged)
		}
	}
}
