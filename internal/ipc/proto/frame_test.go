package proto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestFrameRoundTrip: a frame that was encoded decodes to the same header and body.
func TestFrameRoundTrip(t *testing.T) {
	in := command.CMConnect{ID: 1, QP: 2, Timeout: 3, Param: command.ConnParam{PrivateLen: 224}}
	f := AppendFrame(nil, OpCMConnect, 0, 77, Encode(&in))
	var buf []byte
	h, body, err := ReadFrame(bytes.NewReader(f), &buf, MaxRequest)
	if err != nil || h.Op != OpCMConnect || h.ID != 77 {
		t.Fatal(h, err)
	}
	out, err := Decode[command.CMConnect](body)
	if err != nil || out != in {
		t.Errorf("decoded %+v (%v), want %+v", out, err, in)
	}
}

// TestBadFrames: a frame with an impossible header or a short body is refused, and no memory is set aside for it.
func TestBadFrames(t *testing.T) {
	var buf []byte
	for name, f := range map[string][]byte{
		"length 0":         make([]byte, 16),
		"length 4 GB":      append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 12)...),
		"longer than most": append(binary.LittleEndian.AppendUint32(nil, MaxRequest+1), make([]byte, 12)...),
	} {
		if _, _, err := ReadFrame(bytes.NewReader(f), &buf, MaxRequest); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: error %v, want %v", name, err, ErrFrame)
		}
	}
	if cap(buf) != 0 {
		t.Errorf("%d bytes set aside for a bad frame", cap(buf))
	}
	if _, err := Decode[command.CreateQP](make([]byte, 3)); !errors.Is(err, ErrFrame) {
		t.Errorf("short body: error %v, want %v", err, ErrFrame)
	}
}

// TestErrorRoundTrip: an error keeps its class and text when it is sent, a long text is cut, and an error of another
// type becomes an internal one.
func TestErrorRoundTrip(t *testing.T) {
	in := command.Errorf(command.Busy, "CQ 7 has 2 QPs")
	if out := DecodeError(EncodeError(in)); out.Error() != in.Error() || !errors.Is(out, &command.Error{Code: command.Busy}) {
		t.Errorf("decoded %v, want %v", out, in)
	}
	long := DecodeError(EncodeError(command.Errorf(command.Busy, "%s", strings.Repeat("é", maxDetail))))
	if n := len(AsError(long).Detail); n != maxDetail {
		t.Errorf("a long detail has %d bytes, want %d", n, maxDetail)
	}
	if out := AsError(DecodeError(EncodeError(errors.New("x")))); out.Code != command.Internal || out.Detail != "x" {
		t.Errorf("decoded %v, want an internal error \"x\"", out)
	}
}

// FuzzFrame: the decoders do not panic on any input, and no memory is set aside for frames that are refused.
func FuzzFrame(f *testing.F) {
	f.Add(AppendFrame(nil, OpHello, 0, 1, Encode(Hello{Magic: Magic})))
	f.Add(AppendFrame(nil, OpEvents, 0, 0, Encode(command.Event{Type: 1})))
	f.Add(AppendFrame(nil, OpCMConnect, FlagResponse|FlagError, 9, EncodeError(errors.New("no"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		var buf []byte
		for {
			h, body, err := ReadFrame(r, &buf, MaxRequest)
			if err != nil {
				break
			}
			if len(body) != int(h.Length)-HeaderSize {
				t.Fatal("body does not have the length that the header says")
			}
			_, _ = Decode[command.CMConnect](body)
			if v, err := Decode[command.ModifyQP](body); err == nil && len(Encode(&v)) != len(body) {
				t.Fatal("round trip changes the length")
			}
			_, _ = DecodeList[command.Event](body)
			_ = DecodeError(body)
		}
		if cap(buf) > MaxRequest {
			t.Fatal("buffer grew past the limit")
		}
	})
}
