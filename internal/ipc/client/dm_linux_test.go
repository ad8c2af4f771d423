package client_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// TestDeviceMemory: messages and atomics go in and out of device memory, embedded and attached, of which an adapter has a
// limited amount for all programs together.
func TestDeviceMemory(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		ctx := testbed.Context(t)
		d := [2]*verbs.Device{b.Device(t, 0), b.Device(t, 1)}
		size, free, err := d[0].DMSize()
		if err != nil || size == 0 || free != size {
			t.Fatalf("%d bytes, %d free, %v", size, free, err)
		}
		_, err = d[0].AllocDM(int(size) + 1)
		testbed.WantErr(t, err, verbs.ErrInvalid)
		_, err = d[0].AllocDM(0)
		testbed.WantErr(t, err, verbs.ErrInvalid)
		m := [2]*verbs.DM{get(d[0].AllocDM(10000))(t), get(d[1].AllocDM(10000))(t)}
		_, err = d[0].AllocDM(int(size))
		testbed.WantErr(t, err, verbs.ErrExhausted)

		data := bytes.Repeat([]byte{1, 2, 3}, 100)
		get(m[1].WriteAt(data, 4096))(t)
		_, err = m[1].WriteAt(data, 10000-299)
		testbed.WantErr(t, err, verbs.ErrInvalid)
		_, err = m[1].ReadAt(data, -1)
		testbed.WantErr(t, err, verbs.ErrInvalid)

		var pd [2]*verbs.PD
		var mr [2]*verbs.MR
		var qp [2]*verbs.QP
		var cq [2]*verbs.CQ
		for i := range pd {
			pd[i] = get(d[i].AllocPD())(t)
			mr[i] = get(m[i].Register(pd[i], 4096, 4096, everything))(t)
			cq[i] = get(d[i].CreateCQ(16))(t)
			qp[i] = get(pd[i].CreateQP(verbs.QPConfig{Type: verbs.RC, SendCQ: cq[i], RecvCQ: cq[i], SendDepth: 8, RecvDepth: 8,
				SendSGE: 1, RecvSGE: 1}))(t)
		}
		testbed.WantErr(t, m[0].Free(), verbs.ErrBusy)
		_, err = m[0].Register(pd[1], 0, 10, everything)
		testbed.WantErr(t, err, verbs.ErrInvalid)
		_, err = m[0].Register(pd[0], 9000, 1001, everything)
		testbed.WantErr(t, err, verbs.ErrInvalid)
		if mr[0].RemoteAddr() != 0 || mr[0].SGE(5, 1).Addr != 5 {
			t.Errorf("addresses begin at %#x and %#x, want 0", mr[0].RemoteAddr(), mr[0].SGE(0, 1).Addr)
		}

		server, client := &end{qp: qp[0], cq: cq[0]}, &end{qp: qp[1], cq: cq[1]}
		server.host, client.host = b.Server, b.Client
		connect(t, ctx, server, client, b.Addrs[0])
		ok(t, client.do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{mr[1].SGE(0, 300)}, RemoteAddr: 64, RKey: mr[0].RKey()}))
		got := make([]byte, 300)
		if get(m[0].ReadAt(got, 4096+64))(t); !bytes.Equal(got, data) {
			t.Error("the write did not arrive")
		}
		get(m[0].WriteAt(binary.NativeEndian.AppendUint64(nil, 5), 4096))(t)
		ok(t, client.do(ctx, verbs.SendWR{Op: verbs.OpFetchAdd, SGE: []verbs.SGE{mr[1].SGE(8, 8)}, RKey: mr[0].RKey(), Add: 3}))
		get(m[0].ReadAt(got[:8], 4096))(t)
		if v := binary.NativeEndian.Uint64(got); v != 8 {
			t.Errorf("fetch and add of 3 to 5 leaves %d", v)
		}
		for i := range mr {
			ok(t, mr[i].Deregister())
			ok(t, m[i].Free())
			ok(t, m[i].Free()) // as with other objects
		}
		if _, free, err := d[0].DMSize(); err != nil || free != size {
			t.Errorf("%d bytes of %d are free at the end, %v", free, size, err)
		}
	})
}

// TestDeviceMemoryEndsWithItsProgram: what a program has not freed is there for others when it has detached.
func TestDeviceMemoryEndsWithItsProgram(t *testing.T) {
	ctx := testbed.Context(t)
	addrs := testbed.Addrs()
	socket, _ := testbed.Driver(t, addrs)
	one, other := get(verbs.Attach(ctx, socket))(t), get(verbs.Attach(ctx, socket))(t)
	defer other.Close()
	d := get(one.DeviceByAddr(addrs[0]))(t)
	size, _, err := d.DMSize()
	ok(t, err)
	get(d.AllocDM(int(size)))(t)
	seen := get(other.DeviceByAddr(addrs[0]))(t)
	if _, free, err := seen.DMSize(); free != 0 || err != nil {
		t.Errorf("%d bytes are free (%v) while a program has all", free, err)
	}
	ok(t, one.Close())
	await.Eventually(t, "the memory is free", func() bool {
		_, free, err := seen.DMSize()
		return err == nil && free == size
	})
}
