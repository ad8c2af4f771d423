package registry

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// entry returns the path as encoded in the file.
func (p Path) entry() []byte {
	return []byte(fold(strings.ReplaceAll(p.s, `\`, "\x00")) + "\x00")
}

// entry returns the value's path and name as encoded in the file.
func (c *Change) entry() []byte {
	return append(append(c.Key.entry(), 0), fold(c.Value.Name)...)
}

// encodeValue encodes a value for the file: its type in 32 bits, the length of its name in 32 bits, the
// name, the data.
func encodeValue(v Value) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(v.Type))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(v.Name)))
	return append(append(b, v.Name...), v.Data...)
}

func decodeValue(b []byte) (Value, error) {
	if len(b) < 8 {
		return Value{}, errCorrupt
	}
	n := uint64(binary.LittleEndian.Uint32(b[4:]))
	if n > uint64(len(b)-8) {
		return Value{}, errCorrupt
	}
	v := Value{Type: Type(binary.LittleEndian.Uint32(b)), Name: string(b[8 : 8+n]), Data: bytes.Clone(b[8+n:])}
	c := Change{Kind: SetValue, Key: Path{ControlSet + `\x`}, Value: v}
	return v, c.check()
}

// seal appends the CRC-32C of an entry to its value.
func seal(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return binary.LittleEndian.AppendUint32(bytes.Clone(value), sum)
}

// unseal checks an entry and returns its value.
func unseal(key, sealed []byte) ([]byte, error) {
	n := len(sealed) - 4
	if n < 0 || !bytes.Equal(seal(key, sealed[:n]), sealed) {
		return nil, fmt.Errorf("%w: the checksum of entry %q is wrong", errCorrupt, key)
	}
	return sealed[:n], nil
}
