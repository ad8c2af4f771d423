package bench

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

func TestTCPSenderMeasuresBothWays(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, latency := range []bool{false, true} {
		ready, served := make(chan struct{}), make(chan error, 1)
		go func() { served <- ServeTCP(ctx, addr, func() { close(ready) }) }()
		<-ready
		r, err := DialTCP(ctx, addr, 1000, latency, 20*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if (r.Gbps > 0) == latency || (r.Typical > 0 && r.P99 >= r.Typical) != latency {
			t.Errorf("latency %v: %+v", latency, r)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

func TestServerRefusesAbsurdSizes(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- ServeTCP(ctx, addr, func() { close(ready) }) }()
	<-ready
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte{'b', 0xff, 0xff, 0xff, 0xff})
	if err := <-served; err == nil || !strings.Contains(err.Error(), "allowed: 1 to") {
		t.Errorf("got %v", err)
	}
}

func TestMediansAndTables(t *testing.T) {
	s := samples{}
	for _, v := range []float64{9, 1, 5} {
		s.add("write64", v)
		s.add("write", v)
	}
	if s.median("write64") != 5 || s.median("nothing") != 0 {
		t.Errorf("%v", s)
	}
	p := &path{name: "here"}
	var b strings.Builder
	printBandwidths(&b, p, s)
	printLatencies(&b, p, s)
	if strings.Contains(b.String(), "TCP") || !strings.Contains(b.String(), "| 64 | 5.00 |") || !strings.Contains(b.String(), "| median | 5.00 |") {
		t.Error(b.String())
	}
	s.add("tcp64", 2)
	s.add("tcp", 2.5)
	b.Reset()
	printBandwidths(&b, p, s)
	printLatencies(&b, p, s)
	if !strings.Contains(b.String(), "| 2.00 |  | 2.50 |") {
		t.Error(b.String())
	}
}

func TestMemcpyIsPositive(t *testing.T) {
	if v := Memcpy(time.Millisecond); !(v > 0) {
		t.Errorf("%v Gb/s", v)
	}
}
