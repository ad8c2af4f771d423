package firmware

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// magic begins an image. Like PNG's it shows what a transfer as text does to it.
var magic = []byte{0x89, 'S', 'V', 'F', '\r', '\n', 0x1a, '\n'}

const (
	format     = 1
	headerSize = 16
	sumSize    = sha256.Size
	// MaxSize is the most bytes that an image has.
	MaxSize = 16 << 10
)

// tag says what a record is.
type tag uint16

const (
	tagVersion     tag = iota + 1 // three numbers of 2 bytes
	tagReleased                   // text
	tagDevice                     // part number of the card that it stands for, 2 bytes
	tagPSID                       // text
	tagName                       // text
	tagDescription                // text
	tagGUID                       // 8 bytes
	tagMAC                        // 6 bytes
	tagParameter                  // value, 4 bytes, and name
)

// Encode returns the file of an image, which must pass Check.
func (m *Image) Encode() []byte {
	b := append([]byte(nil), magic...)
	b = binary.BigEndian.AppendUint16(b, format)
	b = append(b, make([]byte, headerSize-len(b))...)
	record := func(t tag, body []byte) {
		b = binary.BigEndian.AppendUint16(b, uint16(t))
		b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
		b = append(b, body...)
	}
	number := func(n ...uint16) (out []byte) {
		for _, x := range n {
			out = binary.BigEndian.AppendUint16(out, x)
		}
		return out
	}
	record(tagVersion, number(m.Version.Major, m.Version.Minor, m.Version.Sub))
	record(tagReleased, []byte(m.Released))
	record(tagDevice, number(uint16(m.Generation.PartID())))
	record(tagPSID, []byte(m.PSID))
	record(tagName, []byte(m.Name))
	record(tagDescription, []byte(m.Description))
	record(tagGUID, binary.BigEndian.AppendUint64(nil, m.GUID))
	record(tagMAC, m.MAC[:])
	for _, name := range slices.Sorted(maps.Keys(m.Parameters)) {
		record(tagParameter, append(binary.BigEndian.AppendUint32(nil, uint32(m.Parameters[name])), name...))
	}
	return seal(b)
}

// seal adds to a header and a body the body's length and the checksum.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[12:], uint32(len(b)-headerSize))
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// Errors of files that are no image.
var (
	ErrNoImage  = errors.New("not an image of SoftVPI: it does not begin as one")
	ErrChecksum = errors.New("the checksum is wrong: the file was cut or changed")
)

// Decode reads the file of an image. It accepts what Encode makes, and nothing else.
func Decode(b []byte) (Image, error) {
	if !bytes.HasPrefix(b, magic) || len(b) < headerSize+sumSize {
		return Image{}, ErrNoImage
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != format {
		return Image{}, &FieldError{"version of the format", fmt.Sprint(v), fmt.Sprint(format)}
	}
	if len(b) > MaxSize {
		return Image{}, &FieldError{"size", fmt.Sprint(len(b)), fmt.Sprintf("up to %d bytes", MaxSize)}
	}
	end := len(b) - sumSize
	if sum := sha256.Sum256(b[:end]); !bytes.Equal(sum[:], b[end:]) || binary.BigEndian.Uint32(b[12:]) != uint32(end-headerSize) {
		return Image{}, ErrChecksum
	}
	m, err := records(b[headerSize:end])
	if err == nil {
		err = m.Check()
	}
	if err == nil && !bytes.Equal(m.Encode(), b) {
		err = errors.New("the records are not in their order, or one is missing")
	}
	if err != nil {
		return Image{}, err
	}
	return m, nil
}

func records(b []byte) (m Image, err error) {
	for len(b) > 0 {
		if len(b) < 4 || len(b) < 4+int(binary.BigEndian.Uint16(b[2:])) {
			return m, errors.New("a record is longer than the body")
		}
		t, n := tag(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
		if err := m.take(t, b[4:4+n]); err != nil {
			return m, err
		}
		b = b[4+n:]
	}
	return m, nil
}

// sizes are those of records that have one.
var sizes = map[tag]int{tagVersion: 6, tagDevice: 2, tagGUID: 8, tagMAC: 6}

func (m *Image) take(t tag, body []byte) error {
	if n, ok := sizes[t]; ok && n != len(body) || t == tagParameter && len(body) < 4 {
		return fmt.Errorf("record %d has %d bytes", t, len(body))
	}
	switch t {
	case tagVersion:
		m.Version = Version{binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:]), binary.BigEndian.Uint16(body[4:])}
	case tagReleased:
		m.Released = string(body)
	case tagDevice:
		part := int(binary.BigEndian.Uint16(body))
		for _, g := range []catalogue.Generation{catalogue.MLX4, catalogue.MLX5} {
			if int(g.PartID()) == part {
				m.Generation = g
			}
		}
	case tagPSID:
		m.PSID = string(body)
	case tagName:
		m.Name = string(body)
	case tagDescription:
		m.Description = string(body)
	case tagGUID:
		m.GUID = binary.BigEndian.Uint64(body)
	case tagMAC:
		m.MAC = [6]byte(body)
	case tagParameter:
		if m.Parameters == nil {
			m.Parameters = map[string]uint64{}
		}
		m.Parameters[string(body[4:])] = uint64(binary.BigEndian.Uint32(body))
	default:
		return fmt.Errorf("record %d is not known", t)
	}
	return nil
}

// Digest is the checksum of an image.
func (m *Image) Digest() [sumSize]byte {
	b := m.Encode()
	return [sumSize]byte(b[len(b)-sumSize:])
}

// Part is a part of an image's file.
type Part struct {
	Name     string
	At, Size int // bytes
}

// Parts returns those of a file that Decode accepts.
func Parts(b []byte) []Part {
	end := len(b) - sumSize
	return []Part{{"HEADER", 0, headerSize}, {"PERSONALITY AND PARAMETERS", headerSize, end - headerSize}, {"SHA-256", end, sumSize}}
}
