package firmware

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// The sections of a device's configuration file, which flint dc writes and mlxburn -conf reads (WinOF 5.50, 4.5.3.4.1.2).
// HCA has the parameters of the device, PORT1 and PORT2 those of mlxconfig whose names end with _P1 and _P2, in small
// letters and without that.
const (
	sectionPersonality = "PS_INFO"
	sectionAdapter     = "ADAPTER"
	sectionDevice      = "HCA"
	sectionPort        = "PORT"
)

// deviceFields are the manual's names of parameters in HCA.
var deviceFields = map[string]string{"SRIOV_EN": "sriov_en", "NUM_OF_VFS": "total_vfs"}

// place returns the section and the name of a parameter in it.
func place(p catalogue.Parameter) (section, field string) {
	if f, ok := deviceFields[p.Name]; ok {
		return sectionDevice, f
	}
	if base, port, ok := cutPort(p.Name); ok {
		return sectionPort + port, strings.ToLower(base)
	}
	return sectionDevice, strings.ToLower(p.Name)
}

func cutPort(name string) (base, port string, ok bool) {
	i := strings.LastIndex(name, "_P")
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+2:], true
}

// INI returns the configuration of an image, every parameter with its value or default.
func (m *Image) INI() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "[%s]\nName = %s\nDescription = %s\n\n", sectionPersonality, m.Name, m.Description)
	fmt.Fprintf(&b, "[%s]\nPSID = %s\nadapter_dev_id = %d\nbase_guid = %s\nbase_mac = %s\n", sectionAdapter, m.PSID, m.Generation.PartID(),
		m.GUIDText(), m.MACText())
	last := ""
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, m.Generation) {
		section, field := place(p)
		if section == sectionDevice && last == "" {
			fmt.Fprintf(&b, "\n[%s]\nnum_pfs = 1\n", section)
			last = section
		}
		if section == sectionDevice {
			fmt.Fprintf(&b, "%s = %s\n", field, m.text(p))
		}
	}
	for _, port := range []string{"1", "2"} {
		fmt.Fprintf(&b, "\n[%s%s]\n", sectionPort, port)
		for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, m.Generation) {
			if section, field := place(p); section == sectionPort+port {
				fmt.Fprintf(&b, "%s = %s\n", field, m.text(p))
			}
		}
	}
	return b.Bytes()
}

// text is the value of a parameter as files of configuration have it.
func (m *Image) text(p catalogue.Parameter) string {
	n, ok := m.Parameters[p.Name]
	if !ok {
		n = p.Default.Number
	}
	if logical(p) {
		return strconv.FormatBool(n != 0)
	}
	return strconv.FormatUint(n, 10)
}

// logical reports whether a parameter is true or false.
func logical(p catalogue.Parameter) bool { return len(p.Choices) == 2 && p.Choices[1].Name == "True" }

// LineError is an error in a line of a configuration.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// ReadINI changes an image as a file of configuration says: what it does not name stays. Errors are *LineError.
func (m *Image) ReadINI(text string) error {
	section := ""
	parameters := map[string]uint64{}
	for n, v := range m.Parameters {
		parameters[n] = v
	}
	changed := *m
	changed.Parameters = parameters
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if err := changed.line(line, &section); err != nil {
			return &LineError{i + 1, err}
		}
		if err := changed.Check(); err != nil {
			return &LineError{i + 1, err}
		}
	}
	*m = changed
	return nil
}

func (m *Image) line(line string, section *string) error {
	if name, ok := strings.CutPrefix(line, "["); ok {
		name, ok = strings.CutSuffix(name, "]")
		for _, s := range []string{sectionPersonality, sectionAdapter, sectionDevice, sectionPort + "1", sectionPort + "2"} {
			if ok && strings.EqualFold(s, name) {
				*section = s
				return nil
			}
		}
		return &FieldError{"section", line, "[PS_INFO], [ADAPTER], [HCA], [PORT1], [PORT2]"}
	}
	name, value, ok := strings.Cut(line, "=")
	if !ok {
		return fmt.Errorf("%q is no NAME = VALUE", line)
	}
	return m.set(*section, strings.TrimSpace(name), strings.TrimSpace(value))
}

func (m *Image) set(section, name, value string) error {
	switch strings.ToLower(section + "." + name) {
	case "ps_info.name":
		m.Name = value
	case "ps_info.description":
		m.Description = value
	case "adapter.psid":
		m.PSID = value
	case "adapter.adapter_dev_id":
		if n, ok := catalogue.ParseNumber(value); !ok || n != uint64(m.Generation.PartID()) {
			return &FieldError{name, value, fmt.Sprintf("%d, of the firmware it is for", m.Generation.PartID())}
		}
	case "adapter.base_guid":
		return ParseGUID(value, &m.GUID)
	case "adapter.base_mac":
		return ParseMAC(value, &m.MAC)
	case "hca.num_pfs":
		if value != "1" {
			return &FieldError{name, value, "1"}
		}
	default:
		return m.setParameter(section, name, value)
	}
	return nil
}

func (m *Image) setParameter(section, name, value string) error {
	var names []string
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, m.Generation) {
		in, field := place(p)
		if in != section {
			continue
		}
		if names = append(names, field); !strings.EqualFold(field, name) {
			continue
		}
		if b, err := strconv.ParseBool(value); err == nil && logical(p) {
			if value = "0"; b {
				value = "1"
			}
		}
		n, err := p.Parse(value, m.Generation)
		if err == nil {
			m.Parameters[p.Name] = n
		}
		return err
	}
	switch section {
	case sectionPersonality:
		names = []string{"Name", "Description"}
	case sectionAdapter:
		names = []string{"PSID", "adapter_dev_id", "base_guid", "base_mac"}
	case "":
		return fmt.Errorf("%s stands before any section", name)
	}
	return &FieldError{"name in [" + section + "]", strconv.Quote(name), strings.Join(names, ", ")}
}

// ParseGUID parses the base of GUIDs as flint takes it: up to 16 hexadecimal digits, perhaps with 0x or colons; 0 or N/A: none.
// Errors are *FieldError.
func ParseGUID(s string, to *uint64) error {
	n, err := hexadecimal(s, 64)
	if err != nil {
		return &FieldError{"GUID", strconv.Quote(s), "16 hexadecimal digits such as 0002c90300a0b0c0"}
	}
	*to = n
	return nil
}

// ParseMAC is like ParseGUID, for 12 digits.
func ParseMAC(s string, to *[6]byte) error {
	n, err := hexadecimal(s, 48)
	if err != nil || n>>40&1 != 0 {
		return &FieldError{"MAC", strconv.Quote(s), "12 hexadecimal digits such as 0002c9a0b0c0, of one station"}
	}
	for i := range to {
		to[i] = byte(n >> (40 - 8*i))
	}
	return nil
}

func hexadecimal(s string, bits int) (uint64, error) {
	if s == "N/A" {
		return 0, nil
	}
	s = strings.NewReplacer(":", "", "-", "").Replace(s)
	return strconv.ParseUint(strings.TrimPrefix(strings.ToLower(s), "0x"), 16, bits)
}
