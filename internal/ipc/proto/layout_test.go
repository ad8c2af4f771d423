package proto

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestPlainLayout: a body that is copied as a whole has the same encoding as its fields one by one, and a type with
// gaps, booleans or pointers is not copied.
func TestPlainLayout(t *testing.T) {
	samePlain[Hello](t)
	samePlain[Welcome](t)
	samePlain[command.CreateQP](t)
	samePlain[command.CMConnect](t)
	samePlain[command.CMAccept](t)
	samePlain[command.Event](t)
	samePlain[command.AdapterInfo](t)
	samePlain[command.Handle](t)
	samePlain[Empty](t)
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
			t.Errorf("%T is not copied as a whole on a little-endian machine", *new(T))
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
	fast, err := Decode[T](wire)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := binary.Write(&want, binary.LittleEndian, &slow); err != nil {
		t.Fatal(err)
	}
	if got := Encode(slow); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%T:\n% x, want\n% x", slow, got, want.Bytes())
	}
	var again bytes.Buffer
	if err := binary.Write(&again, binary.LittleEndian, &fast); err != nil || !bytes.Equal(again.Bytes(), want.Bytes()) {
		t.Errorf("%T: decoded\n% x, want\n% x, %v", slow, again.Bytes(), want.Bytes(), err)
	}
	if len(wire) == 0 {
		return
	}
	list, err := DecodeList[T](append(wire, wire...))
	if err != nil || len(list) != 2 || !bytes.Equal(EncodeList(list[1:]), EncodeList(list[:1])) {
		t.Errorf("%T: list of %d, %v", slow, len(list), err)
	}
}
