package ring

import "testing"

func BenchmarkSend(b *testing.B) {
	p, c, _ := sendPair(b, SendGeometry(64, 1, 64))
	in, out := SendWR{Op: OpWrite, NumSGE: 1}, Work{}
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Post(&in)
		_, _ = c.Next(&out)
		c.Elements(&out, in.SGE[:1])
		c.Release(1)
	}
}

func BenchmarkRecv(b *testing.B) {
	g := RecvGeometry(64, 1)
	m := mem(b, g)
	p, c := must(OpenRecv(m, g))(b), must(OpenRecv(m, g))(b)
	in, out := RecvWR{NumSGE: 1}, RecvWR{}
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Post(&in)
		_, _ = c.Next(&out)
	}
}

func BenchmarkCQ(b *testing.B) {
	l, p, _ := cqPair(b, 64)
	var out [16]CQE
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Push(&out[0])
		p.Poll(out[:])
	}
}

func BenchmarkDoorbell(b *testing.B) {
	g := DoorbellGeometry(64)
	m := mem(b, g)
	p, l := must(OpenDoorbells(m, g))(b), must(OpenDoorbells(m, g))(b)
	var out [16]uint32
	b.ReportAllocs()
	for b.Loop() {
		p.Ring(7)
		_, _, _ = l.Drain(out[:])
	}
}
