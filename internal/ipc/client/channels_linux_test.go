package client

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// realHost is the host of a driver without adapters.
func realHost(t *testing.T) server.Host {
	t.Helper()
	h, err := device.NewHost(device.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return server.DeviceHost(h)
}

// TestChannelsAreLimited: a program that makes channels without end gets an error that names the limit, and is served on;
// others are not affected. Destroying one makes room for another.
func TestChannelsAreLimited(t *testing.T) {
	s, path := fake.Serve(t, realHost(t), server.Config{ProgramDescriptors: 16})
	c := dial(t, path, Options{})
	create := func() (command.Handle, error) {
		r, err := c.call(ctx, proto.OpCreateChannel, proto.Encode(command.CreateChannel{Kind: command.Completions}))
		if err != nil {
			return 0, err
		}
		stream.CloseAll(r.fds)
		h, err := proto.Decode[proto.HandleArgs](r.body)
		return h.Handle, err
	}
	var last command.Handle
	for n := range 100 {
		h, err := create()
		if err == nil {
			last = h
			continue
		}
		if n < 8 || n > 16 || !fake.IsCode(err, command.Exhausted) || !strings.Contains(err.Error(), "limits.descriptors_per_program") {
			t.Errorf("channel %d: %v", n, err)
		}
		break
	}
	if u := s.Ledger().Usage(budget.Descriptors); u.Used > 16 || u.Refused == 0 {
		t.Errorf("%+v: want at most 16, and a refusal", u)
	}
	if err := c.Destroy(ctx, command.KindChannel, last); err != nil {
		t.Error(err)
	}
	await.Eventually(t, "there is room for another channel", func() bool { _, err := create(); return err == nil })
	if _, err := dial(t, path, Options{}).Adapters(ctx); err != nil {
		t.Errorf("another program: %v", err)
	}
}
