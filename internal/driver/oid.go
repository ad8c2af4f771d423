package driver

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// The objects of an adapter's driver, as NDIS numbers them.
const (
	// oidDropless is OID_MLX_DROPLESS_MODE (WinOF-2 Ethernet, Dropless Mode; WinOF 5.50, 4.1.12.5.2).
	oidDropless = 0xFFA0C932
	// oidReset resets the adapter. No manual prints a number: this one is chosen here.
	oidReset = 0xFFA0C9F0
	// oidResetVF is OID_SRIOV_RESET_VF of ntddndis.h: it resets a virtual function (WinOF 5.50, Bug Fixes History, 1333906).
	oidResetVF = 0x00010255
)

// The information buffer of oidResetVF, NDIS_SRIOV_RESET_VF_PARAMETERS: NDIS's header (type, revision, size) and the function's number.
const (
	resetVFType     = 0x80 // NDIS_OBJECT_TYPE_DEFAULT
	resetVFRevision = 1
	resetVFSize     = 6
	resetVFNumberAt = 4
)

// oidOf parses the number of an object.
func oidOf(text string) (uint32, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 32)
	if err != nil || n != oidDropless && n != oidReset && n != oidResetVF {
		return 0, api.Wrong("OID", strconv.Quote(text), fmt.Sprintf("0x%X (dropless mode), 0x%X (reset), 0x%08X (reset of a virtual function)",
			uint32(oidDropless), uint32(oidReset), uint32(oidResetVF)))
	}
	return uint32(n), nil
}

// resetByOID resets an adapter. The buffer says nothing but that the object is set.
func (d *Driver) resetByOID(q api.OIDRequest) error {
	if q.Buffer != "01" {
		return api.Wrong("buffer", strconv.Quote(q.Buffer), "01 (reset the adapter)")
	}
	return d.ResetAdapter(q.Adapter)
}

// resetVFByOID resets a virtual function of an adapter by its number.
func (d *Driver) resetVFByOID(index uint32, buffer string) error {
	b, err := hex.DecodeString(buffer)
	if err != nil || len(b) != resetVFSize || b[0] != resetVFType || b[1] != resetVFRevision ||
		binary.LittleEndian.Uint16(b[2:]) != resetVFSize {
		return api.Wrong("buffer", strconv.Quote(buffer),
			"80010600 (type, revision and size) and the number of the virtual function in two bytes, the low one first, as 800106000300")
	}
	name, err := d.functionByNumber(index, int(binary.LittleEndian.Uint16(b[resetVFNumberAt:])))
	if err != nil {
		return err
	}
	return d.ResetFunction(name)
}

// functionByNumber returns the name of a virtual function of an adapter that works.
func (d *Driver) functionByNumber(index uint32, number int) (string, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	var have []string
	for _, f := range d.functions.of(index) {
		if f.live && f.number == number {
			return f.cfg.Name, nil
		}
		if f.live {
			have = append(have, strconv.Itoa(f.number))
		}
	}
	allowed := "the adapter has no virtual functions that work"
	if len(have) > 0 {
		allowed = strings.Join(have, ", ")
	}
	return "", api.Wrong("number of the virtual function in buffer", strconv.Itoa(number), allowed)
}

// SetOID implements apiserver.OIDSource.
func (d *Driver) SetOID(q api.OIDRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	oid, err := oidOf(q.OID)
	if err != nil {
		return err
	}
	switch oid {
	case oidReset:
		return d.resetByOID(q)
	case oidResetVF:
		return d.resetVFByOID(index, q.Buffer)
	}
	return d.setDropless(index, q.Buffer)
}

// QueryOID implements apiserver.OIDSource.
func (d *Driver) QueryOID(adapter, oid string) (api.OIDAnswer, error) {
	index, err := d.find(adapter)
	if err != nil {
		return api.OIDAnswer{}, err
	}
	n, err := oidOf(oid)
	if err != nil {
		return api.OIDAnswer{}, err
	}
	if n != oidDropless {
		return api.OIDAnswer{}, fmt.Errorf("%w: a reset can be set, not queried", api.ErrUnsupported)
	}
	return d.queryDropless(index)
}
