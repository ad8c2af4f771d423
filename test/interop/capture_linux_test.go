package interop

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// Sizes of a pcap file.
const (
	pcapHeader = 24 // of the file
	pcapRecord = 16 // before each frame
	pcapLength = 8  // where that has the frame's length
)

// records calls each for every whole frame of a pcap file, and returns how many bytes of the file they take with the file's header.
func records(f *os.File, each func(frame []byte)) (int64, error) {
	in := bufio.NewReaderSize(f, 1<<20)
	if _, err := in.Discard(pcapHeader); err != nil {
		return 0, fmt.Errorf("%s has no header: %w", f.Name(), err)
	}
	var frame []byte
	for whole := int64(pcapHeader); ; {
		b, err := in.Peek(pcapRecord)
		if err != nil {
			return whole, nil
		}
		n := int(binary.NativeEndian.Uint32(b[pcapLength:]))
		if cap(frame) < pcapRecord+n {
			frame = make([]byte, pcapRecord+n)
		}
		frame = frame[:pcapRecord+n]
		if _, err := io.ReadFull(in, frame); err != nil {
			return whole, nil
		}
		whole += int64(len(frame))
		each(frame[pcapRecord:])
	}
}

// trim cuts off what a pcap file has of its last packet if that is not all of it: QEMU may have ended while it wrote, and then
// tshark fails.
func trim(capture string) error {
	f, err := os.OpenFile(capture, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	whole, err := records(f, func([]byte) {})
	if err != nil {
		return err
	}
	return f.Truncate(whole)
}

// lastFrames returns the last n frames of a pcap file.
func lastFrames(capture string, n int) ([][]byte, error) {
	f, err := os.Open(capture)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var last [][]byte
	_, err = records(f, func(frame []byte) {
		if len(last) == n {
			last = append(last[:0], last[1:]...)
		}
		last = append(last, append([]byte(nil), frame...))
	})
	return last, err
}
