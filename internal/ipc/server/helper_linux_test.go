package server_test

import (
	"context"
	"fmt"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
)

// childVariable makes this test binary a program that attaches to the given socket, makes an object of every kind that
// holds something in the driver, says so, and works until it is killed.
const childVariable = "SOFTVPI_TEST_ATTACH"

func child(socket string) error {
	ctx := context.Background()
	c, err := client.Dial(ctx, socket, client.Options{Name: "child"})
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
