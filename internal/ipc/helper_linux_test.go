package ipc

import (
	"context"
	"fmt"
	"os"

	"github.com/softvpi/softvpi/internal/command"
)

// childVariable tells this test binary to be a program that attaches.
const childVariable = "SOFTVPI_TEST_ATTACH"

// TrafficVariable tells this test binary to run Traffic, a program on the public
// API, which the tests of the real device set.
const TrafficVariable = "SOFTVPI_TEST_TRAFFIC"

// Traffic is the program of TrafficVariable.
var Traffic func(arg string) error

// helper runs what a test starts this binary again for: it attaches, makes
// objects of every kind that holds something in the driver, says so, and works
// until it is killed.
func helper() bool {
	socket, traffic := os.Getenv(childVariable), os.Getenv(TrafficVariable)
	if socket == "" && traffic == "" {
		return false
	}
	run := func() error { return child(socket) }
	if traffic != "" {
		run = func() error { return Traffic(traffic) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func child(socket string) error {
	ctx := context.Background()
	c, err := Dial(ctx, socket, Options{Name: "child"})
	if err != nil {
		return err
	}
	q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 8192})
	if err != nil {
		return err
	}
	id, _, err := c.AllocSegment(ctx, 1<<20)
	if err != nil {
		return err
	}
	for _, r := range []command.RegisterMemory{{Segment: id, Length: 1 << 20}, {}} {
		if _, err := c.RegisterMemory(ctx, r); err != nil {
			return err
		}
	}
	go c.WaitCQ(ctx, q.Handle, 0)
	go c.CMListen(ctx, 1, 1)
	fmt.Println("attached")
	for {
		c.Doorbell(1)
		if _, err := c.AllocPD(ctx, 0); err != nil {
			return err
		}
	}
}
