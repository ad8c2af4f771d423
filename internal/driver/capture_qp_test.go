package driver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

// captureQP returns a capture of the requester of a connection that writes 64 KB and reads them back, while another queue pair of the same
// adapters does the same.
func captureQP(t *testing.T, comments bool) []byte {
	t.Helper()
	cfg := twoAdapters(t)
	d := start(t, cfg)
	t.Cleanup(func() { stop(t, d) })
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	admin := NewAdmin(cfg.Socket)
	h, err := verbs.Attach(ctx, cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	from, to := cfg.Adapters[0].Address, cfg.Adapters[1].Address
	a, err := newCheckSide(h, from, 2*checkBytes, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	b, err := newCheckSide(h, to, checkBytes, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	disconnect, err := connect(ctx, a, b, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.StartCapture(ctx, CaptureRequest{Adapter: "left", QP: a.qp.Number() ^ 1, Comments: true}); err == nil ||
		!strings.Contains(err.Error(), "qp is") {
		t.Errorf("a queue pair that there is not: %v", err)
	}
	id, stream, err := admin.StartCapture(ctx, CaptureRequest{Adapter: "left", QP: a.qp.Number(), Comments: comments})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for _, op := range []verbs.SendWR{
		{Op: verbs.OpWrite, SGE: []verbs.SGE{a.mr.SGE(0, checkBytes)}, RemoteAddr: b.mr.RemoteAddr(), RKey: b.mr.RKey()},
		{Op: verbs.OpRead, SGE: []verbs.SGE{a.mr.SGE(checkBytes, checkBytes)}, RemoteAddr: b.mr.RemoteAddr(), RKey: b.mr.RKey()},
	} {
		if err := a.run(ctx, &op); err != nil {
			t.Fatal(err)
		}
		if _, err := ping(ctx, h, from, to); err != nil { // whose packets are others'
			t.Fatal(err)
		}
	}
	list, err := admin.Captures(ctx)
	if err != nil || len(list) != 1 || list[0].QP != a.qp.Number() {
		t.Errorf("the captures are %+v (%v)", list, err)
	}
	if err := errors.Join(admin.StopCapture(ctx, id), disconnect()); err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// commentsOf reads the comments of packets by the blocks of the pcapng draft (4.3): the options of an Enhanced Packet Block are behind its
// packet, and opt_comment is option 1.
func commentsOf(t *testing.T, file []byte) (list []string) {
	t.Helper()
	for len(file) >= 12 {
		kind, n := binary.LittleEndian.Uint32(file), binary.LittleEndian.Uint32(file[4:])
		if n < 12 || int(n) > len(file) || n%4 != 0 || binary.LittleEndian.Uint32(file[n-4:]) != n {
			t.Fatalf("a block of %d of %d bytes", n, len(file))
		}
		if kind == 6 {
			captured := binary.LittleEndian.Uint32(file[20:])
			list = append(list, comment(file[28+(captured+3)&^3:n-4]))
		}
		file = file[n:]
	}
	if len(file) > 0 {
		t.Fatalf("%d bytes behind the last block", len(file))
	}
	return list
}

func comment(options []byte) string {
	for len(options) >= 4 {
		code, n := binary.LittleEndian.Uint16(options), int(binary.LittleEndian.Uint16(options[2:]))
		if code == 1 {
			return string(options[4 : 4+n])
		}
		options = options[4+(n+3)&^3:]
	}
	return ""
}

// TestCaptureOfOneQP: a capture of a queue pair has its packets in both directions and no others', and each says in its comment what was
// done with it, for our reader and for gopacket's alike.
func TestCaptureOfOneQP(t *testing.T) {
	file := captureQP(t, true)
	list := commentsOf(t, file)
	var again []string
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, _, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, strings.Join(options.Comments, "\n"))
	}
	if !slices.Equal(list, again) {
		t.Errorf("the comments are %q, and for gopacket %q", list, again)
	}
	for _, want := range []string{"sent: request; ", "arrived: acknowledges packets; ", "requester: PSN ", "window "} {
		if !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no packet has the comment %q: %q", want, list)
		}
	}
	requests := 0
	for i, text := range list {
		if strings.HasPrefix(text, "sent: request;") {
			requests++
		}
		if !strings.HasPrefix(text, "sent: ") && !strings.HasPrefix(text, "arrived: ") {
			t.Errorf("packet %d has the comment %q", i, text)
		}
	}
	if requests < 17 { // 64 KiB at path MTU 4096 are 16 packets, and one asks for them back or more do
		t.Errorf("%d requests", requests)
	}
}

// TestCaptureOfOneQPWithoutComments: the packets alone.
func TestCaptureOfOneQPWithoutComments(t *testing.T) {
	list := commentsOf(t, captureQP(t, false))
	if len(list) < 32 {
		t.Errorf("%d packets, want those of writing and reading 64 KiB", len(list))
	}
	for _, text := range list {
		if text != "" {
			t.Errorf("a comment: %q", text)
		}
	}
}

// TestCommentsInTshark: Wireshark's tshark shows the same comments.
func TestCommentsInTshark(t *testing.T) {
	systemtest.Mark(t)
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	file := captureQP(t, true)
	name := filepath.Join(t.TempDir(), "qp.pcapng")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-n", "-r", name, "-T", "fields", "-e", "frame.comment").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if want := commentsOf(t, file); !slices.Equal(got, want) {
		t.Errorf("tshark shows %q, want %q", got, want)
	}
}

// TestQPCaptureRefusals: what is asked for with a queue pair that cannot be is refused with its field.
func TestQPCaptureRefusals(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	admin := NewAdmin(cfg.Socket)
	for want, q := range map[string]CaptureRequest{
		"comments is true": {Adapter: "left", Comments: true},
		"qp is 5":          {Adapter: "left", QP: 5},
		`qp is "16777216"`: {Adapter: "left", QP: 1 << 24},
	} {
		if _, _, err := admin.StartCapture(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "x")
	if _, err := admin.CaptureToFile(t.Context(), CaptureRequest{Adapter: "left", QP: 1 << 24}, path); err == nil ||
		!strings.Contains(err.Error(), "1 to 16777215") {
		t.Errorf("to a file: %v", err)
	}
}
