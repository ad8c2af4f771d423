package ndperf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHelloRoundTrip(t *testing.T) {
	for _, test := range Tests {
		h := hello{test: test, session: 0x0123456789abcdef, index: 7}
		got, err := decodeHello(append(h.encode(), make([]byte, 32)...))
		if err != nil || got != h {
			t.Errorf("%s: got %+v, %v; want %+v", test.Name(), got, err, h)
		}
	}
}

func TestHelloFitsTheCallersPrivateData(t *testing.T) {
	const maxCallerData = 56 // what the RDMA IP header leaves of a connection request's private data
	if n := len(hello{test: Tests[0]}.encode()); n > maxCallerData {
		t.Errorf("%d bytes, want at most %d", n, maxCallerData)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(hello{test: Tests[0], index: 1}.encode())
	f.Add([]byte("NDPF\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHello(b)
		if err != nil {
			return
		}
		if again, err := decodeHello(h.encode()); err != nil || again != h {
			t.Errorf("%+v does not survive a round trip: %+v, %v", h, again, err)
		}
	})
}

func FuzzMessage(f *testing.F) {
	for _, m := range []message{
		{Type: "params", Params: &params{QPs: 1, Depth: 1, MaxSize: 1}, Buffer: &buffer{Address: 1, Token: 2, Length: 3}},
		{Type: "begin", Round: &round{Bytes: 1}},
		{Type: "end", Round: &round{Bytes: 1, Iterations: 9}, Row: &Row{Latency: &LatencyRow{Min: 1}}},
		{Type: "error", Error: "x"},
	} {
		b, err := m.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMessage(b)
		if err != nil {
			return
		}
		for _, kind := range []string{"params", "ready", "begin", "go", "end", "result", "bye"} {
			_ = m.want(kind)
		}
		text, err := m.encode()
		if err != nil {
			return // longer than a message may be
		}
		again, err := decodeMessage(text)
		if err != nil || cmp.Diff(m, again) != "" {
			t.Errorf("round trip: %v\n%s", err, cmp.Diff(m, again))
		}
	})
}

func TestMessagesOutOfRangeAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"params","params":{"qps":0,"depth":1,"max_size":1}}`:                   "qps is 0; allowed: 1 to 16384",
		`{"type":"params","params":{"qps":1,"depth":9999999,"max_size":1}}`:             "depth is 9999999",
		`{"type":"params","params":{"qps":1,"depth":1,"max_size":999999999}}`:           "max_size is 999999999",
		`{"type":"params","params":{"qps":1,"depth":1,"max_size":1,"cycle":268435457}}`: "cycle is 268435457; allowed: 0 to 268435456",
		`{"type":"begin","round":{"bytes":-1}}`:                                         "bytes is -1",
		`{"type":"begin","round":{"bytes":1,"iterations":-5}}`:                          "iterations is -5",
		`{`: "control message of the peer",
	} {
		if _, err := decodeMessage([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	m := message{Type: "error", Error: "out of memory"}
	if err := m.want("go"); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("an error message: got %v, want its text \"out of memory\"", err)
	}
	m = message{Type: "begin"}
	if err := m.want("begin"); err == nil {
		t.Error("a begin without its round was accepted")
	}
}
