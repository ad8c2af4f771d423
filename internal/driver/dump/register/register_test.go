package register

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
)

var update = flag.Bool("update", false, "write the document of the layout")

// some returns a port with objects in every table.
func some(n int) Port {
	s := &device.Inspection{PKeys: []uint16{0xffff, 0x8001},
		GIDs: []command.GID{{Index: 1, RoCE: 3, GID: [16]byte{0xfe, 0x80, 15: 1}}}, LeftOut: 3}
	s.Counters.Name, s.Info.GUID, s.Info.Up, s.Speed = "Ethernet 1", 0x0002c90300000001, 1, 100e9
	for i := range n {
		q := device.QPInspection{Handle: command.Handle(i), SendCQ: uint32(i), RecvCQ: device.NoQueue, Program: "ib_write_bw", PID: 7}
		q.Number, q.Type, q.Attr.State, q.Attr.SQPSN = uint32(0x10+i), command.RC, command.RTS, 0xabcdef
		s.QPs = append(s.QPs, q)
	}
	s.CQs = []device.CQInspection{{Number: 1, Unpolled: 9, Interval: time.Second, Program: "p"}}
	s.SRQs, s.MRs = []device.SRQInspection{{Depth: 4}}, []device.MRInspection{{Base: 1 << 40, Length: 1 << 33, Key: 0x1234}}
	s.Queues = []device.EventQueueInspection{{Waiting: 1, Events: []command.Event{{Type: command.EventPortDown}}}}
	return Port{Time: time.Unix(1700000000, 123), Generation: "mlx5", Inspection: s, Counters: []Counter{{"Retransmissions", 1 << 40}}}
}

// TestRegistersAreRead: what was written is read, of every table and both ports of a device.
func TestRegistersAreRead(t *testing.T) {
	ports := []Port{some(3), some(0)}
	got, err := Read(Dump(ports))
	if err != nil || len(got) != 2 {
		t.Fatal(err, len(got))
	}
	if d := got[0]; !d.Time.Equal(ports[0].Time) || d.Generation != "mlx5" || d.LeftOut != 3 {
		t.Errorf("the header has %+v", d)
	}
	for i, d := range got {
		for j, b := range Blocks {
			want := b.Records(&ports[i])
			if !slices.EqualFunc(d.Tables[j].Records, want, slices.Equal[[]uint32]) {
				t.Errorf("port %d, %s: %v, want %v", i, b.Name, d.Tables[j].Records, want)
			}
		}
	}
	var said []string
	for _, v := range BlockOf("qp").Values(got[0].Tables[3].Records[2]) {
		said = append(said, v.Name+"="+v.String())
	}
	all := strings.Join(said, " ")
	for _, want := range []string{"number=0x12", "type=RC", "state=RTS", "send_cq=0x2", "recv_cq=0xffffffff", "sq_psn=0xabcdef", "program=ib_write_bw"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	for _, x := range []struct{ block, field, want string }{
		{"PORT", "name", "Ethernet 1"}, {"PORT", "guid", "0x2c90300000001"}, {"PORT", "speed", "100000000000"}, {"GID", "gid", "fe80::1"},
		{"GID", "roce", "v2"}, {"MR", "length", "8589934592"}, {"COUNTER", "name", "Retransmissions"}, {"COUNTER", "value", "1099511627776"},
		{"CQ", "moderation_ns", "1000000000"}, {"EQ", "first_type", fmt.Sprint(uint32(command.EventPortDown))},
	} {
		b := BlockOf(x.block)
		i := slices.IndexFunc(b.Fields, func(f Field) bool { return f.Name == x.field })
		if v := b.Values(got[0].Tables[b.ID-1].Records[0])[i]; v.String() != x.want {
			t.Errorf("%s of %s is %s, want %s", x.field, x.block, v, x.want)
		}
	}
}

// TestValuesAreRead: every value that a field can hold is the same after it was written and read.
func TestValuesAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := some(rapid.IntRange(0, 3).Draw(t, "queue pairs"))
		s := p.Inspection
		for i := range s.QPs {
			s.QPs[i].Number, s.QPs[i].PID = rapid.Uint32().Draw(t, "number"), int(rapid.Uint32().Draw(t, "pid"))
			s.QPs[i].Attr.Route.Addr = [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address"))
			s.QPs[i].Program = rapid.StringMatching(`[ -~]{0,64}`).Draw(t, "program")
		}
		s.MRs[0].Base, s.MRs[0].Length = rapid.Uint64().Draw(t, "base"), rapid.Uint64().Draw(t, "length")
		got, err := Read(Dump([]Port{p}))
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range s.QPs {
			v := BlockOf("QP").Values(got[0].Tables[3].Records[i])
			if v[0].Number() != uint64(q.Number) || v[len(v)-2].Number() != uint64(q.PID) || v[len(v)-1].String() != q.Program ||
				[16]byte(v[13].bytes()) != [16]byte(q.Attr.Route.Addr) {
				t.Fatalf("%v, want %+v", v, q)
			}
		}
		if v := BlockOf("MR").Values(got[0].Tables[7].Records[0]); v[3].Number() != s.MRs[0].Base || v[4].Number() != s.MRs[0].Length {
			t.Fatalf("%v, want %+v", v, s.MRs[0])
		}
	})
}

// TestDamagedRegisters: a file that is no dump, or is damaged, is refused with what is wrong and where.
func TestDamagedRegisters(t *testing.T) {
	whole := string(Dump([]Port{some(2)}))
	lines := strings.SplitAfter(whole, "\n")
	edit := func(i int, line string) string {
		c := slices.Clone(lines)
		c[i] = line
		return strings.Join(c, "")
	}
	for name, c := range map[string]struct{ file, want string }{
		"empty":           {"", "no dwords"},
		"text":            {"# registers\nname left\n", `line 2: "name left"; allowed: 0xADDRESS 0xVALUE`},
		"short digits":    {edit(4, "0x10 0x1\n"), "line 5: "},
		"another program": {"0x00000000 0x00000001\n", "0x00000004"},
		"no adapter's":    {edit(0, "0x00000000 0x00000001\n"), "expected is 0x53565052"},
		"another layout":  {edit(1, "0x00000004 0x00000001\n"), "layout 00000001; this program reads"},
		"cut":             {strings.Join(lines[:60], ""), "the file ends before 0x"},
		"a line missing":  {strings.Join(slices.Delete(slices.Clone(lines), 70, 71), ""), "line 71: address 0x"},
		"changed":         {edit(len(lines)-2, lines[len(lines)-2][:11]+"0x12345678\n"), "checksum"},
		"more":            {whole + "0xf0000000 0x00000000\n", "end of the file"},
		"many ports":      {edit(3, "0x0000000c 0x00000011\n"), "allowed: at most 16 ports"},
		"many records":    {edit(14, lines[14][:11]+"0xffffffff\n"), "QP 2"},
	} {
		_, err := Read([]byte(c.file))
		var damage *DamageError
		if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestLayoutOfTheRegisters: tables do not overlap, names are theirs alone, and the document is the layout.
func TestLayoutOfTheRegisters(t *testing.T) {
	for i, b := range Blocks {
		names := map[string]bool{}
		for _, f := range b.Fields {
			if names[f.Name] || len(f.Name) == 0 {
				t.Errorf("%s: field %q twice", b.Name, f.Name)
			}
			names[f.Name] = true
		}
		if b.ID != i+1 || b.ID >= maxIDs || b.Stride < 4*b.Size() || b.Stride&(b.Stride-1) != 0 {
			t.Errorf("%s: block %d, stride %d, size %d", b.Name, b.ID, b.Stride, b.Size())
		}
	}
	const document = "../../../../docs/spec/registers.txt"
	if *update {
		if err := os.WriteFile(document, []byte(Layout()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(document); err != nil || string(b) != Layout() {
		t.Errorf("%s is not the layout (%v): run go test ./internal/driver/dump/register -run Layout -update", document, err)
	}
}

// FuzzRead: no file makes the reader fail, and what it accepts is what writing it again makes.
func FuzzRead(f *testing.F) {
	f.Add(Dump([]Port{some(1), some(0)}))
	f.Add([]byte("0x00000000 0x53565052\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		ports, err := Read(file)
		var damage *DamageError
		if err != nil && !errors.As(err, &damage) {
			t.Errorf("%v is no DamageError", err)
		}
		for _, p := range ports {
			for _, x := range p.Tables {
				for _, r := range x.Records {
					for _, v := range x.Values(r) {
						_ = v.String()
					}
				}
			}
		}
	})
}

// BenchmarkDump is what the registers of 10000 queue pairs cost.
func BenchmarkDump(b *testing.B) {
	p := []Port{some(10000)}
	b.ReportMetric(float64(len(Dump(p))), "bytes")
	for b.Loop() {
		Dump(p)
	}
}
