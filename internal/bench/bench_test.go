package bench

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

func TestTCPSenderMeasures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- ServeTCP(ctx, addr, func() { close(ready) }) }()
	<-ready
	r, err := DialTCP(ctx, addr, 1000, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if !(r.Gbps > 0) || r.Bytes != 1000 {
		t.Errorf("%+v", r)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestMemcpyIsPositive(t *testing.T) {
	if v := Memcpy(time.Millisecond); !(v > 0) {
		t.Errorf("%v Gb/s", v)
	}
}

func TestRunSkipsWhatCannotBe(t *testing.T) {
	r := &runner{report: &Report{}}
	r.report.skip("veth", errSkip{"not root"}.Error())
	var b strings.Builder
	if err := r.report.WriteMarkdown(&b); err != nil || !strings.Contains(b.String(), "\nveth: not measured, not root.\n") {
		t.Errorf("%v, %q", err, b.String())
	}
}
