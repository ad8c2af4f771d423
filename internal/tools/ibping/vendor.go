// Package ibping holds two tools that communicate between nodes by vendor datagrams: ibping tests whether
// a node answers, ibsysstat shows what it is.
package ibping

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/mad"
)

// Vendor classes with an OUI (IBA 16.5), and the offsets of the OUI and the data.
const (
	classPing     = 0x32
	classSysstat  = 0x33
	openIB        = 0x001405 // the OUI of OpenIB
	vendorOUI     = 37
	vendorData    = 40
	vendorDataLen = mad.Len - vendorData
)

// request returns a vendor datagram.
func request(class uint8, attribute uint16, oui uint32) *[mad.Len]byte {
	var m [mad.Len]byte
	h := mad.Header{BaseVersion: mad.BaseVersion, Class: class, ClassVersion: 1, Method: mad.MethodGet, AttributeID: attribute}
	h.Append(m[:0])
	m[vendorOUI], m[vendorOUI+1], m[vendorOUI+2] = byte(oui>>16), byte(oui>>8), byte(oui)
	return &m
}

// text returns the data of a datagram up to its first zero byte.
func text(m *[mad.Len]byte) string {
	data := m[vendorData:]
	if i := bytes.IndexByte(data, 0); i >= 0 {
		data = data[:i]
	}
	return string(data)
}

// serve answers the datagrams of a class until the user stops it. It ignores attributes for which there is
// no answer.
func serve(s *ibdiag.Session, class uint8, oui uint32, answer func(attribute uint16) (string, bool)) error {
	want := request(class, 0, oui)
	err := s.Port.Serve(class, func(d *umad.Datagram) *[mad.Len]byte {
		m := d.MAD
		h, err := mad.ParseHeader(m[:])
		if err != nil || h.Method != mad.MethodGet || !bytes.Equal(m[vendorOUI:vendorData], want[vendorOUI:vendorData]) {
			return nil
		}
		data, ok := answer(h.AttributeID)
		if !ok {
			return nil
		}
		m[3] = mad.MethodGetResp
		clear(m[vendorData:])
		copy(m[vendorData:mad.Len-1], data)
		return &m
	})
	if err != nil {
		return err
	}
	<-s.Context.Done()
	return nil
}

// hostAndDomain returns the name of this machine, with which it answers a ping.
func hostAndDomain() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?hostname?"
	}
	if b, err := os.ReadFile("/proc/sys/kernel/domainname"); err == nil { // Linux
		if domain := strings.TrimSpace(string(b)); domain != "" {
			return host + "." + domain
		}
	}
	return host
}

// gone returns the error of a tool whose node does not answer.
func gone(ctx context.Context, err error, what string) error {
	if ctx.Err() != nil || !errors.Is(err, umad.ErrTimeout) {
		return err
	}
	return ibdiag.Failf("%s: Connection timed out", what)
}
