package proto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
)

// Encode encodes v, or what it points to, for the protocol: fixed-width little-endian fields.
func Encode[T any](v T) []byte {
	if plain[T]() {
		return append([]byte(nil), asBytes(unsafe.Slice(&v, 1))...)
	}
	var b bytes.Buffer
	// Only fixed-size values get here: a test covers every body.
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic("proto: " + err.Error())
	}
	return b.Bytes()
}

// EncodeList encodes the elements one after another.
func EncodeList[T any](list []T) []byte {
	if plain[T]() {
		return append([]byte(nil), asBytes(list)...)
	}
	return Encode(list)
}

// Laid is EncodeList without a copy if none is needed: the result is valid as long as the list.
func Laid[T any](list []T) []byte {
	if plain[T]() {
		return asBytes(list)
	}
	return Encode(list)
}

// Decode decodes a T from a body that must have its exact size.
func Decode[T any](b []byte) (v T, err error) {
	if plain[T]() && len(b) == int(unsafe.Sizeof(v)) {
		copy(asBytes(unsafe.Slice(&v, 1)), b)
		return v, nil
	}
	if n := binary.Size(v); n != len(b) {
		return v, fmt.Errorf("%w: body of %d bytes, want %d", ErrFrame, len(b), n)
	}
	_, err = binary.Decode(b, binary.LittleEndian, &v)
	return v, err
}

// DecodeList decodes a slice from a body of whole elements.
func DecodeList[T any](b []byte) ([]T, error) {
	var one T
	size := binary.Size(one)
	if len(b)%size != 0 {
		return nil, fmt.Errorf("%w: body of %d bytes, want a multiple of %d", ErrFrame, len(b), size)
	}
	list := make([]T, len(b)/size)
	if plain[T]() {
		copy(asBytes(list), b)
		return list, nil
	}
	_, err := binary.Decode(b, binary.LittleEndian, list)
	return list, err
}

// asBytes returns the memory of plain elements.
func asBytes[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list))*unsafe.Sizeof(*new(T)))
}

// plains caches the results of plain.
var plains sync.Map // reflect.Type to bool

// plain reports whether a T in memory has the layout of the stream, so that it can be copied: on a
// little-endian processor, if it consists only of numbers without padding. Otherwise walking the fields by
// reflection would dominate the cost of a command.
func plain[T any]() bool {
	t := reflect.TypeFor[T]()
	if is, ok := plains.Load(t); ok {
		return is.(bool)
	}
	is := binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && numbers(t) && binary.Size(*new(T)) == int(t.Size())
	plains.Store(t, is)
	return is
}

// numbers reports whether every bit pattern is a value of the type.
func numbers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return true
	case reflect.Array:
		return numbers(t.Elem())
	case reflect.Struct:
		for f := range t.NumField() {
			if !numbers(t.Field(f).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// EncodeError encodes an error: its code, four zero bytes, the detail.
func EncodeError(err error) []byte {
	e := AsError(err)
	detail := e.Detail
	if len(detail) > maxDetail {
		detail = detail[:maxDetail]
		for !utf8.ValidString(detail) && len(detail) > 0 {
			detail = detail[:len(detail)-1]
		}
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(e.Code))
	return append(append(b, 0, 0, 0, 0), detail...)
}

// DecodeError is the reverse of EncodeError; a body that is no error gives another error.
func DecodeError(b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("%w: error body of %d bytes", ErrFrame, len(b))
	}
	return &command.Error{Code: command.Code(binary.LittleEndian.Uint32(b)), Detail: string(b[8:])}
}

// AsError converts err to a *command.Error.
func AsError(err error) *command.Error {
	var e *command.Error
	if errors.As(err, &e) {
		return e
	}
	return command.Errorf(command.Internal, "%v", err)
}

// FixedName pads a name to 64 bytes.
func FixedName(s string) (b [64]byte) {
	copy(b[:], s)
	return b
}

// NameOf is the reverse of FixedName; it replaces unprintable characters.
func NameOf(b [64]byte) string {
	s := bytes.TrimRight(b[:], "\x00")
	s = bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
	return string(s)
}
