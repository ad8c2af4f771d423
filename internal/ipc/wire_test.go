package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
)

// bodies are all structs that travel.
var bodies = []any{
	hello{}, welcome{}, goodbye{}, arenaBody{}, credit{}, adapterArgs{}, handleArgs{}, windowArgs{}, resizeArgs{},
	multicastArgs{}, destroyArgs{}, bindArgs{}, listenArgs{}, attributesArgs{}, segmentArgs{}, segmentReply{}, empty{},
	shareBody{}, introduction{}, dropBody{}, tracksBody{}, mapSegmentArgs{}, moved{},
	command.AdapterInfo{}, command.GID{}, command.PortInfo{}, command.Counter{}, command.RegisterMemory{}, command.Memory{},
	command.CreateCQ{}, command.Queue{}, command.ModerateCQ{}, command.CreateSRQ{}, command.ModifySRQ{},
	command.SRQInfo{}, command.CreateQP{}, command.QueuePair{}, command.ModifyQP{}, command.QPInfo{},
	command.CreateAH{}, command.CMCreate{}, command.CMConnect{}, command.CMAccept{}, command.CMReject{},
	command.CreateChannel{}, command.RegisterMemoryAt{}, command.CMSetChannel{}, command.CMResolveAddr{}, command.CMResolveRoute{},
	command.CMJoin{}, command.CMLeave{}, command.CMOption{}, command.CMNotify{},
	command.CMInfo{}, command.Event{}, command.Endpoint{}, command.Ring{}, command.AddressVector{}, command.ConnParam{},
	direct.Key{}, direct.RingAt{}, direct.Terms{}, direct.Direction{}, // in shared memory
}

// A C struct with the same fields has the same layout: packed encoding and
// natural alignment agree.
func TestBodiesHaveCLayout(t *testing.T) {
	for _, b := range bodies {
		typ := reflect.TypeOf(b)
		size, align := cLayout(t, typ, typ.Name())
		if n := binary.Size(b); n != size || size%align != 0 {
			t.Errorf("%v: encoded size %d, C size %d, alignment %d", typ, n, size, align)
		}
	}
}

func cLayout(t *testing.T, typ reflect.Type, path string) (size, align int) {
	switch typ.Kind() {
	case reflect.Struct:
		align = 1
		for i := range typ.NumField() {
			f := typ.Field(i)
			s, a := cLayout(t, f.Type, path+"."+f.Name)
			if size%a != 0 {
				t.Errorf("%s.%s at offset %d needs alignment %d", path, f.Name, size, a)
			}
			size += s
			align = max(align, a)
		}
		if size%align != 0 {
			t.Errorf("%s: %d bytes, not a multiple of its alignment %d", path, size, align)
		}
		return size, align
	case reflect.Array:
		s, a := cLayout(t, typ.Elem(), path)
		return s * typ.Len(), a
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int(typ.Size()), int(typ.Size())
	}
	t.Fatalf("%s: %v has no fixed layout", path, typ)
	return 0, 0
}

func TestRequestsFitTheirFrame(t *testing.T) {
	for _, b := range bodies {
		if n := binary.Size(b); n+headerSize > maxRequest {
			t.Errorf("%T: %d bytes", b, n)
		}
	}
	if n := headerSize + maxPush*binary.Size(command.Event{}); n > maxFrame {
		t.Errorf("pushed events: %d bytes", n)
	}
}

func TestFrameRoundTrip(t *testing.T) {
	in := command.CMConnect{ID: 1, QP: 2, Timeout: 3, Param: command.ConnParam{PrivateLen: 224}}
	f := appendFrame(nil, opCMConnect, 0, 77, encode(&in))
	var buf []byte
	h, body, err := readFrame(bytes.NewReader(f), &buf, maxRequest)
	if err != nil || h.Op != opCMConnect || h.ID != 77 {
		t.Fatal(h, err)
	}
	out, err := decode[command.CMConnect](body)
	if err != nil || out != in {
		t.Errorf("%+v %v", out, err)
	}
}

func TestBadFrames(t *testing.T) {
	var buf []byte
	for name, f := range map[string][]byte{
		"length 0":         make([]byte, 16),
		"length 4 GB":      append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 12)...),
		"longer than most": append(binary.LittleEndian.AppendUint32(nil, maxRequest+1), make([]byte, 12)...),
	} {
		if _, _, err := readFrame(bytes.NewReader(f), &buf, maxRequest); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if cap(buf) != 0 {
		t.Errorf("%d bytes set aside for a bad frame", cap(buf))
	}
	if _, err := decode[command.CreateQP](make([]byte, 3)); !errors.Is(err, errFrame) {
		t.Errorf("short body: %v", err)
	}
}

func TestErrorRoundTrip(t *testing.T) {
	in := command.Errorf(command.Busy, "CQ 7 has 2 QPs")
	if out := decodeError(encodeError(in)); out.Error() != in.Error() || !errors.Is(out, &command.Error{Code: command.Busy}) {
		t.Errorf("%v", out)
	}
	long := decodeError(encodeError(command.Errorf(command.Busy, "%s", strings.Repeat("é", maxDetail))))
	if n := len(asError(long).Detail); n != maxDetail {
		t.Errorf("detail of %d bytes", n)
	}
	if out := asError(decodeError(encodeError(errors.New("x")))); out.Code != command.Internal || out.Detail != "x" {
		t.Errorf("%v", out)
	}
}

// FuzzFrame: no bytes make the decoders panic, and what is refused sets no
// memory aside.
func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, opHello, 0, 1, encode(hello{Magic: Magic})))
	f.Add(appendFrame(nil, opEvents, 0, 0, encode(command.Event{Type: 1})))
	f.Add(appendFrame(nil, opCMConnect, flagResponse|flagError, 9, encodeError(errors.New("no"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		var buf []byte
		for {
			h, body, err := readFrame(r, &buf, maxRequest)
			if err != nil {
				break
			}
			if len(body) != int(h.Length)-headerSize {
				t.Fatal("body does not have the length that the header says")
			}
			_, _ = decode[command.CMConnect](body)
			if v, err := decode[command.ModifyQP](body); err == nil && len(encode(&v)) != len(body) {
				t.Fatal("round trip changes the length")
			}
			_, _ = decodeList[command.Event](body)
			_ = decodeError(body)
		}
		if cap(buf) > maxRequest {
			t.Fatal("buffer grew past the limit")
		}
	})
}

// What is copied is what the fields say one by one.
func TestPlainLayout(t *testing.T) {
	samePlain[hello](t)
	samePlain[welcome](t)
	samePlain[command.CreateQP](t)
	samePlain[command.CMConnect](t)
	samePlain[command.CMAccept](t)
	samePlain[command.Event](t)
	samePlain[command.AdapterInfo](t)
	samePlain[command.Handle](t)
	samePlain[empty](t)
	if plain[struct {
		A uint8
		B uint32
	}]() || plain[struct{ A bool }]() || plain[*uint32]() {
		t.Error("a type with gaps, a truth value or a pointer counts as plain")
	}
}

func samePlain[T any](t *testing.T) {
	t.Helper()
	if !plain[T]() {
		if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
			t.Errorf("%T is not plain", *new(T))
		}
		return
	}
	wire := make([]byte, binary.Size(*new(T)))
	for i := range wire {
		wire[i] = byte(i*7 + 1)
	}
	var slow T
	if _, err := binary.Decode(wire, binary.LittleEndian, &slow); err != nil {
		t.Fatal(err)
	}
	fast, err := decode[T](wire)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := binary.Write(&want, binary.LittleEndian, &slow); err != nil {
		t.Fatal(err)
	}
	if got := encode(slow); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%T:\n% x, want\n% x", slow, got, want.Bytes())
	}
	var again bytes.Buffer
	if err := binary.Write(&again, binary.LittleEndian, &fast); err != nil || !bytes.Equal(again.Bytes(), want.Bytes()) {
		t.Errorf("%T: decoded\n% x, want\n% x, %v", slow, again.Bytes(), want.Bytes(), err)
	}
	if len(wire) == 0 {
		return
	}
	list, err := decodeList[T](append(wire, wire...))
	if err != nil || len(list) != 2 || !bytes.Equal(encodeList(list[1:]), encodeList(list[:1])) {
		t.Errorf("%T: list of %d, %v", slow, len(list), err)
	}
}
