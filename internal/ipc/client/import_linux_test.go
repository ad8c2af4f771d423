package client

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// imports asks for an object of the program that has a token.
func imports(c *Client, token [16]byte, kind command.Kind, h, pd command.Handle) (proto.Imported, error) {
	return ask[proto.Imported](ctx, c, proto.OpImport, proto.ImportArgs{Token: token, Kind: kind, Handle: h, PD: pd})
}

// TestImport: a program gets objects of another one if it has that one's token and a handle of it, and nothing else. What
// it gets is its own to destroy, except regions, which end with the program that has registered them.
func TestImport(t *testing.T) {
	h, err := device.NewHost(device.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if _, err := h.AddAdapter(device.AdapterConfig{Addr: loopback.Pair()[0]}); err != nil {
		t.Fatal(err)
	}
	_, path := fake.Serve(t, server.DeviceHost(h), server.Config{})
	one, two := dial(t, path, Options{}), dial(t, path, Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pd, err := one.AllocPD(ctx, 0)
	must(err)
	id, _, err := one.AllocSegment(ctx, 8192)
	must(err)
	region := command.RegisterMemory{PD: pd, Access: uint32(memory.LocalWrite), Base: 4096, Length: 8192, Segment: id}
	mr, err := one.RegisterMemory(ctx, region)
	must(err)
	dm, there, err := one.AllocDM(ctx, command.AllocDM{Size: 100})
	must(err)
	exported, err := ask[proto.Exported](ctx, one, proto.OpExport, proto.Empty{})
	must(err)
	again, err := ask[proto.Exported](ctx, one, proto.OpExport, proto.Empty{})
	if must(err); again != exported || exported.Token == [16]byte{} {
		t.Errorf("tokens %x and %x", exported.Token, again.Token)
	}
	token := exported.Token

	got, err := imports(two, token, command.KindPD, pd, 0)
	must(err)
	own := got.Handle
	other, err := two.AllocPD(ctx, 0)
	must(err)
	for _, c := range []struct {
		name  string
		token [16]byte
		kind  command.Kind
		h, pd command.Handle
		want  command.Code
	}{
		{"no token", [16]byte{}, command.KindPD, pd, 0, command.NotFound},
		{"a token that is not quite right", [16]byte{15: token[15] + 1}, 0, 0, 0, command.NotFound},
		{"a kind that is not shared", token, command.KindQP, pd, 0, command.Invalid},
		{"an unknown kind", token, 99, pd, 0, command.Invalid},
		{"a handle of the importer", token, command.KindPD, other, 0, command.NotFound},
		{"a handle of another kind", token, command.KindDM, pd, 0, command.NotFound},
		{"a region in a domain that is not its own", token, command.KindMemory, mr.Handle, other, command.Invalid},
		{"a region in no domain", token, command.KindMemory, mr.Handle, 0, command.NotFound},
		{"a region that is none", token, command.KindMemory, 1, own, command.NotFound},
	} {
		if _, err := imports(two, c.token, c.kind, c.h, c.pd); !errors.Is(err, &command.Error{Code: c.want}) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	keys, err := imports(two, token, command.KindMemory, mr.Handle, own)
	if must(err); keys.LKey != mr.LKey || keys.RKey != mr.RKey || keys.Handle != 0 {
		t.Errorf("region %+v, want the keys of %+v", keys, mr)
	}

	r, err := two.call(ctx, proto.OpImport, proto.Encode(proto.ImportArgs{Token: token, Kind: command.KindDM, Handle: dm.Handle}))
	must(err)
	mapped, err := proto.Decode[proto.Imported](r.body)
	if must(err); len(r.fds) != 1 || mapped.Size < 100 {
		t.Fatalf("device memory %+v with %d descriptors", mapped, len(r.fds))
	}
	here := mapFile(t, r.fds[0], mapped.Size)
	there[5] = 42
	if here[5] != 42 {
		t.Error("the device memory is not the same")
	}

	// The region and the device memory end; the domain stays with the other program.
	must(one.Destroy(ctx, command.KindMemory, mr.Handle))
	if _, err := imports(two, token, command.KindMemory, mr.Handle, own); !errors.Is(err, &command.Error{Code: command.NotFound}) {
		t.Errorf("a region that was destroyed: %v", err)
	}
	must(one.Close())
	if here[5] != 42 {
		t.Error("imported device memory went with the other program")
	}
	must(two.Destroy(ctx, command.KindDM, mapped.Handle))
	if _, err := two.AllocWindow(ctx, own, 1); err != nil {
		t.Errorf("the imported domain: %v", err)
	}
}

// mapFile maps a descriptor that came with an answer, and closes it.
func mapFile(t *testing.T, fd int, size uint64) []byte {
	t.Helper()
	defer unix.Close(fd)
	mem, err := shared.Map(fd, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem
}
