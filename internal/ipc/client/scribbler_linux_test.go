package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/softvpi/softvpi/internal/command"
)

// ScribbleVariable makes this test binary a program that writes random bytes into everything it shares with the
// driver.
const ScribbleVariable = "SOFTVPI_TEST_SCRIBBLE"

func scribbler(socket string) error {
	ctx := context.Background()
	c, err := Dial(ctx, socket, Options{Name: "scribbler"})
	if err != nil {
		return err
	}
	pd, err := c.AllocPD(ctx, 0)
	if err != nil {
		return err
	}
	cq, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 64})
	if err != nil {
		return err
	}
	srq, err := c.CreateSRQ(ctx, command.CreateSRQ{PD: pd, Depth: 64, MaxSGE: 2})
	if err != nil {
		return err
	}
	var handles []command.Handle
	for i := range 8 {
		q := command.CreateQP{
			PD:        pd,
			Type:      command.RC,
			SendCQ:    cq.Handle,
			RecvCQ:    cq.Handle,
			SendDepth: 16,
			RecvDepth: 16,
			SendSGE:   2,
			RecvSGE:   2,
		}
		if i%2 == 0 {
			q.SRQ, q.RecvDepth, q.RecvSGE = srq.Handle, 0, 0
		}
		qp, err := c.CreateQP(ctx, q)
		if err != nil {
			return err
		}
		handles = append(handles, qp.Handle)
		for _, m := range []command.ModifyQP{
			{Mask: command.MaskState | command.MaskAccess | command.MaskPKey, State: command.Init},
			{Mask: command.MaskState, State: command.Err},
		} {
			m.QP = qp.Handle
			_ = c.ModifyQP(ctx, m) // QPs in Init and Error take requests
			if i < 4 {
				break
			}
		}
	}
	fmt.Println("scribbling")
	for i := 0; ; i++ {
		a := c.Arena(0)
		n := rand.IntN(len(a) / 8)
		if i%4 != 0 {
			n = rand.IntN(16 << 10 / 8) // near the doorbells and the first rings
		}
		word := rand.Uint64() >> rand.IntN(64)
		binary.NativeEndian.PutUint64(a[n*8:], word)
		c.Doorbell(handles[rand.IntN(len(handles))])
		if i%1000 == 0 {
			_ = c.ModifyQP(
				ctx,
				command.ModifyQP{QP: handles[rand.IntN(len(handles))], Mask: command.MaskState, State: command.QPState(rand.IntN(2))},
			)
			if _, err := c.AllocPD(ctx, 0); err != nil {
				return nil // the driver may have disconnected it
			}
		}
	}
}
