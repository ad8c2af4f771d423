package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/wire/eth"
)

type demoCmd struct{}

// Run shows two adapters at work in real processes, as a user would start them, with their own socket,
// state and addresses.
func (demoCmd) Run(s *session) error {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	d, err := newDemo(ctx, s.env.Stdout, s.env.Stderr)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.show(); err != nil {
		return fmt.Errorf("demonstration: %w", err)
	}
	return nil
}

// demo is the demonstration: its directory and processes.
type demo struct {
	ctx            context.Context
	out, errs      io.Writer
	dir, exe       string
	env            []string
	first, second  netip.Addr // second may be invalid
	attaches       bool       // programs attach to the driver
	each           string     // seconds per message size
	driver         *exec.Cmd
	driverFinished chan error
}

func newDemo(ctx context.Context, out, errs io.Writer) (*demo, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "softvpi-demo-")
	if err != nil {
		return nil, err
	}
	d := &demo{ctx: ctx, out: out, errs: errs, dir: dir, exe: exe, attaches: runtime.GOOS == "linux", each: "0.2"}
	d.first, d.second, err = demoAddresses()
	d.env = append(os.Environ(), paths.SocketVariable+"="+filepath.Join(dir, "driver.sock"),
		paths.StateVariable+"="+filepath.Join(dir, "state"))
	return d, err
}

// demoAddresses returns the default addresses of the adapters if they are free, otherwise others.
func demoAddresses() (first, second netip.Addr, err error) {
	first, second = netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")
	if runtime.GOOS == "darwin" && !(addressFree(first) && addressFree(second)) {
		return netip.MustParseAddr("127.0.0.1"), netip.Addr{}, nil // the only address of its loopback interface by default
	}
	for range 64 {
		if addressFree(first) && addressFree(second) {
			return first, second, nil
		}
		b := [4]byte{127, byte(1 + rand.N(254)), byte(rand.N(256)), byte(1 + rand.N(126))}
		first = netip.AddrFrom4(b)
		b[3] += 127
		second = netip.AddrFrom4(b)
	}
	return first, second, errors.New("UDP port 4791 is in use on every loopback address that was tried")
}

func addressFree(a netip.Addr) bool {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, eth.PortRoCEv2)))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func (d *demo) show() error {
	if err := d.startDriver(); err != nil {
		return err
	}
	if err := d.foreground("status"); err != nil {
		return err
	}
	if !d.attaches { // the tools use the addresses themselves
		if err := d.stopDriver(); err != nil {
			return err
		}
	}
	if !d.second.IsValid() {
		_, err := fmt.Fprintln(d.out, "\nThe tools need a second address: sudo ifconfig lo0 alias 127.0.0.2; sudo ifconfig lo0 alias 127.0.0.3")
		return err
	}
	first, second := d.first.String(), d.second.String()
	for _, pair := range [][2][]string{
		{{"nd_rping", "-s", "-a", first, "-C", "3"}, {"nd_rping", "-c", "-v", "-V", "-a", first, "-C", "3"}},
		{{"nd_write_bw", "-S", first}, {"nd_write_bw", "-C", first, "-L", second, "-a", "-D", d.each}},
		{{"nd_send_lat", "-S", first}, {"nd_send_lat", "-C", first, "-L", second, "-n", "10000"}},
		{{"nd_write_lat", "-S", first}, {"nd_write_lat", "-C", first, "-L", second, "-n", "10000"}},
		{{"nd_read_lat", "-S", first}, {"nd_read_lat", "-C", first, "-L", second, "-n", "10000"}},
	} {
		if err := d.pair(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return d.stopDriver()
}

// startDriver runs `softvpi up` and waits until it listens.
func (d *demo) startDriver() error {
	args := []string{"up", "--adapter", "Ethernet 1=" + d.first.String()}
	if d.second.IsValid() {
		args = append(args, "--adapter", "Ethernet 2="+d.second.String())
	}
	d.prompt(args, " &")
	d.driver = exec.CommandContext(d.ctx, d.exe, args...)
	d.driver.Env, d.driver.Stderr = d.env, d.errs
	pipe, err := d.driver.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.driver.Start(); err != nil {
		return err
	}
	d.driverFinished = make(chan error, 1)
	up := make(chan bool, 1)
	process := d.driver
	go func() {
		s := bufio.NewScanner(pipe)
		for s.Scan() {
			fmt.Fprintln(d.out, s.Text())
			if strings.HasPrefix(s.Text(), "listening") || strings.HasPrefix(s.Text(), "programs cannot attach") {
				up <- true
			}
		}
		d.driverFinished <- process.Wait()
	}()
	select {
	case <-up:
		return nil
	case err := <-d.driverFinished:
		d.driver = nil
		return fmt.Errorf("the driver did not come up: %w", errors.Join(err, errors.New("see above")))
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}

func (d *demo) stopDriver() error {
	if d.driver == nil {
		return nil
	}
	fmt.Fprintln(d.out, "\n$ kill %1")
	process := d.driver.Process
	d.driver = nil
	killed := process.Signal(syscall.SIGTERM) != nil // Windows has no signals
	if killed {
		process.Kill()
	}
	select {
	case err := <-d.driverFinished:
		if killed {
			return nil
		}
		return err
	case <-time.After(10 * time.Second):
		process.Kill()
		return errors.New("the driver did not stop within 10 s of SIGTERM")
	}
}

func (d *demo) close() {
	if d.driver != nil {
		d.driver.Process.Kill()
		<-d.driverFinished
	}
	os.RemoveAll(d.dir)
}

func (d *demo) prompt(args []string, suffix string) {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; strings.Contains(a, " ") {
			quoted[i] = `"` + a + `"`
		}
	}
	fmt.Fprintf(d.out, "\n$ softvpi %s%s\n", strings.Join(quoted, " "), suffix)
}

func (d *demo) foreground(args ...string) error {
	d.prompt(args, "")
	cmd := exec.CommandContext(d.ctx, d.exe, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = d.env, d.out, d.errs
	return cmd.Run()
}

// pair runs a server and its client; it shows the client's output, and the server's only if something
// failed.
func (d *demo) pair(server, client []string) error {
	d.prompt(server, " &")
	var serverOut bytes.Buffer
	s := exec.CommandContext(d.ctx, d.exe, server...)
	s.Env, s.Stderr = d.env, &serverOut
	ready, err := s.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	r := bufio.NewReader(ready)
	if _, err := r.ReadString('\n'); err != nil { // its first line says that it listens
		return fmt.Errorf("%s: %w: %s", server[0], errors.Join(err, s.Wait()), serverOut.String())
	}
	drained := make(chan struct{})
	go func() { io.Copy(io.Discard, r); close(drained) }()
	if err := d.foreground(client...); err != nil {
		s.Process.Kill()
		<-drained
		s.Wait()
		return fmt.Errorf("%s: %w; server: %s", client[0], err, serverOut.String())
	}
	<-drained
	if err := s.Wait(); err != nil {
		return fmt.Errorf("%s server: %w: %s", server[0], err, serverOut.String())
	}
	return nil
}
